"""A member polls in time however long its work takes, or it would be expelled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import pytest

from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.records import Message
from tests.support.memory_transport import MemoryInput
from tests.support.simulated_process import (
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
    undisturbed,
)

CHUNK_SECONDS = 0.4
PARTITIONS = 8
MAX_SECONDS = 2.0
"""Between two polls; one more chunk may be in progress."""


class Slow(SimulatedProcess):
    """Its chunks are slow; records the times of its polls."""

    def __post_init__(self) -> None:
        super().__post_init__()
        self.polls: list[float] = []

    def _step(self, step: str) -> None:
        if step == "updated":
            self.now += CHUNK_SECONDS

    def observe_polls(self, patch: pytest.MonkeyPatch) -> None:
        poll = MemoryInput.poll

        def observed(
            source: MemoryInput, timeout: float, max_records: int | None = None
        ) -> Mapping[Partition, Sequence[Message]]:
            self.polls.append(self.now)
            return poll(source, timeout, max_records)

        patch.setattr(MemoryInput, "poll", observed)


def longest_interval(process: Slow) -> float:
    return max(later - earlier for earlier, later in pairwise([*process.polls, process.now]))


def test_it_polls_between_many_chunks_of_one_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    values = list(records(450))
    made = broker()
    fill(made, values)
    process = Slow(made, settings())
    process.observe_polls(monkeypatch)
    process.until(lambda: len(process.of(events.ChunkCommitted)) == 29)
    assert longest_interval(process) < MAX_SECONDS
    with undisturbed(values) as expected:
        assert published(made) == published(expected)


def test_it_polls_between_chunks_of_many_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    made = broker(PARTITIONS)
    for number in range(PARTITIONS):
        fill(made, list(records(40, seed=number)), number)
    process = Slow(made, settings())
    process.observe_polls(monkeypatch)
    process.until(lambda: len(process.of(events.ChunkCommitted)) == PARTITIONS)
    assert longest_interval(process) < MAX_SECONDS


def test_received_records_do_not_grow_with_the_lag(monkeypatch: pytest.MonkeyPatch) -> None:
    made = broker()
    fill(made, list(records(3000)))
    process = Slow(made, settings())
    process.observe_polls(monkeypatch)
    process.until(lambda: len(process.of(events.ChunkCommitted)) == 60)
    waiting = max(event.waiting for event in process.of(events.RecordsRead))
    assert waiting < 500 + 15 + CHUNK_SECONDS * 500 / 15


def test_a_partition_that_is_revoked_meanwhile_is_released() -> None:
    made = broker(2)
    for number in range(2):
        fill(made, list(records(450, seed=number)), number)
    process = Slow(made, settings())
    process.until(lambda: len(process.of(events.ChunkCommitted)) >= 4)
    other = Slow(made, settings())
    process.until(lambda: bool(process.of(events.PartitionReleased)), turns=10)
    other.until(lambda: len(other.of(events.ChunkCommitted)) >= 2)
    assert not process.of(events.Fenced)
