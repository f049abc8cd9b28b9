"""The parts of the campaign that disturb brokers, connections and the group, in short."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from stream_fs.broker import Broker, BrokerUnavailable
from tests.campaign import cluster, membership, merges, network, partitions
from tests.campaign.fault_result import Account
from tests.support.recovery.faulty_service import STEPS
from tests.support.recovery.launchers import Forked


def is_right(account: Account) -> None:
    assert account.right, "\n".join((str(account), *account.problems))


@pytest.fixture(scope="module")
def behind_proxy(tmp_path_factory: pytest.TempPathFactory) -> Iterator[network.Scene]:
    folder = tmp_path_factory.mktemp("network")
    with ExitStack() as stack:
        try:
            yield stack.enter_context(network.scene(folder, 2, 24, Forked, random.Random(1)))
        except BrokerUnavailable as reason:
            pytest.skip(str(reason))


def test_the_node_that_leads_all_that_is_written_and_coordinates_may_be_killed(
    tmp_path: Path,
) -> None:
    with ExitStack() as stack:
        try:
            scene = stack.enter_context(cluster.scene(tmp_path, 3, 20, Forked))
        except BrokerUnavailable as reason:
            pytest.skip(str(reason))
        is_right(cluster.kill_the_one(scene))


def test_connections_may_be_cut_at_every_step(behind_proxy: network.Scene) -> None:
    account = behind_proxy.suffer(
        "cut",
        len(STEPS),
        lambda scene, troupe: network.at_every_step(scene, troupe, 1, scene.proxy.cut),
        stand=1,
    )
    is_right(account)


def test_answers_to_commits_may_be_lost(behind_proxy: network.Scene) -> None:
    account = behind_proxy.suffer(
        "answers-lost",
        1,
        lambda scene, troupe: network.lose_answers(scene, troupe, 1),
        manner=network.OPEN,
        stand=1,
    )
    is_right(account)


def test_connections_may_be_slow(behind_proxy: network.Scene) -> None:
    is_right(network.slow(behind_proxy))


def test_connections_may_be_half_open(behind_proxy: network.Scene) -> None:
    account = behind_proxy.suffer(
        "silent", 1, lambda scene, troupe: network.silence(scene, troupe, 1), manner=network.SOON
    )
    is_right(account)


@pytest.mark.parametrize("step", ["merge sent", "merge committed"])
def test_the_process_that_merges_may_be_killed(broker: Broker, tmp_path: Path, step: str) -> None:
    is_right(merges.suffer(broker.bootstrap, tmp_path, Forked, step, rounds=2))


def test_members_may_come_and_go(broker: Broker, tmp_path: Path) -> None:
    chance = random.Random(3)
    where = (broker.bootstrap, tmp_path, Forked)
    is_right(membership.suffer(*where, "cooperative", 3, 12.0, chance))


def test_partitions_may_be_added(broker: Broker, tmp_path: Path) -> None:
    where = (broker.bootstrap, tmp_path, Forked)
    is_right(partitions.suffer(*where, "consumer", 4, after=True))
