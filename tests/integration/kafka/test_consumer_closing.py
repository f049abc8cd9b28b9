"""Members that are closed during a rebalance."""

from __future__ import annotations

import subprocess
import sys

import pytest

from stream_fs.kafka import Rebalance
from stream_fs.pipeline.ports import Partition
from tests.integration.kafka.backend import KafkaBackend
from tests.support.topics import TIMEOUT_SECONDS, Topics
from tests.support.waiting import Member

PROCESSES, MEMBERS = 3, 3


@pytest.mark.parametrize("rebalance", Rebalance)
def test_partitions_that_are_assigned_while_closing_are_never_reported(
    topics: Topics, rebalance: Rebalance
) -> None:
    backend = KafkaBackend(topics, rebalance)
    partition = Partition(backend.topic(), 0)
    member = Member()
    source = backend.transport().input([partition.topic], member)
    backend.assigned(1)  # without a poll: the client's callback is outstanding
    source.close()
    assert member.assignment == set()
    assert "assigned" not in dict(member.events)


@pytest.mark.parametrize("rebalance", Rebalance)
def test_assigned_partitions_are_revoked_once(topics: Topics, rebalance: Rebalance) -> None:
    backend = KafkaBackend(topics, rebalance)
    partition = Partition(backend.topic(), 0)
    member = Member()
    source = backend.transport().input([partition.topic], member)
    member.holds(source, {partition})
    source.close()
    assert [event for event in member.events if event[1]] == [
        ("assigned", (partition,)),
        ("revoked", (partition,)),
    ]


@pytest.mark.parametrize("rebalance", Rebalance)
def test_members_may_be_closed_at_any_moment(topics: Topics, rebalance: Rebalance) -> None:
    topic, group = topics.create("closing", partitions=6), topics.unique("group")
    program = [sys.executable, "-m", "tests.integration.kafka.closing", topics.bootstrap, topic]
    processes = [
        subprocess.Popen(
            [*program, group, rebalance.value, str(seed), str(MEMBERS)],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for seed in range(PROCESSES)
    ]
    try:
        for process in processes:
            said, errors = process.communicate(timeout=TIMEOUT_SECONDS)
            assert process.returncode == 0, errors
            assert said.split() == ["closed"] * MEMBERS
    finally:
        for process in processes:
            process.kill()
            process.communicate()
