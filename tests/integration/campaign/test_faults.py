"""The short form of the faults of brokers, connections and the group."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from stream_fs.broker import Broker, BrokerUnavailable
from tests.campaign import cluster, membership, merges, network, partitions
from tests.campaign.fault_result import FaultResult
from tests.support.recovery.faulty_service import STEPS
from tests.support.recovery.launchers import Forked


def assert_passed(result: FaultResult) -> None:
    assert result.passed, "\n".join((str(result), *result.problems))


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[network.ProxySetup]:
    folder = tmp_path_factory.mktemp("network")
    with ExitStack() as stack:
        try:
            yield stack.enter_context(network.setup(folder, 2, 24, Forked, random.Random(1)))
        except BrokerUnavailable as reason:
            pytest.skip(str(reason))


def test_killing_the_node_that_leads_and_coordinates_everything_changes_no_byte(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        try:
            setup = stack.enter_context(cluster.setup(tmp_path, 3, 20, Forked))
        except BrokerUnavailable as reason:
            pytest.skip(str(reason))
        assert_passed(cluster.kill_leader_of_everything(setup))


def test_cutting_connections_at_every_step_changes_no_byte(
    behind_proxy: network.ProxySetup,
) -> None:
    result = behind_proxy.run_fault(
        "cut",
        len(STEPS),
        lambda setup, group: network.at_every_step(setup, group, 1, setup.proxy.cut),
        stop_rounds=1,
    )
    assert_passed(result)


def test_losing_answers_to_commits_changes_no_byte(behind_proxy: network.ProxySetup) -> None:
    result = behind_proxy.run_fault(
        "answers-lost",
        1,
        lambda setup, group: network.lose_answers(setup, group, 1),
        run_settings=network.LONG_TIMEOUTS,
        stop_rounds=1,
    )
    assert_passed(result)


def test_slow_connections_change_no_byte(behind_proxy: network.ProxySetup) -> None:
    assert_passed(network.slow(behind_proxy))


def test_half_open_connections_change_no_byte(behind_proxy: network.ProxySetup) -> None:
    result = behind_proxy.run_fault(
        "silent",
        1,
        lambda setup, group: network.silence(setup, group, 1),
        run_settings=network.SHORT_TIMEOUTS,
    )
    assert_passed(result)


@pytest.mark.parametrize("step", ["merge sent", "merge committed"])
def test_killing_the_process_that_merges_changes_no_byte(
    broker: Broker, tmp_path: Path, step: str
) -> None:
    assert_passed(merges.run_fault(broker.bootstrap, tmp_path, Forked, step, rounds=2))


def test_members_that_join_and_leave_change_no_byte(broker: Broker, tmp_path: Path) -> None:
    chance = random.Random(3)
    where = (broker.bootstrap, tmp_path, Forked)
    assert_passed(membership.run_fault(*where, "cooperative", 3, 12.0, chance))


def test_added_partitions_change_no_byte(broker: Broker, tmp_path: Path) -> None:
    where = (broker.bootstrap, tmp_path, Forked)
    assert_passed(partitions.run_fault(*where, "consumer", 4, after=True))
