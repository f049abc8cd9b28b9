"""A slow transaction does not block other partitions."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from typing import Any, Literal

import pytest

from stream_fs.errors import AbortableError
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import OutgoingRecord, Partition, Transport
from stream_fs.service.process.executor import CommitThreads
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryPublisher, MemoryTransport
from tests.support.simulated_process import (
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
)

SLOW = Partition(TOPIC, 1)
HANG_SECONDS = 20.0
"""After which a call that would hang for ever makes its test fail."""
TURNS = 200_000
"""More than are needed while jobs run in other threads."""
FAST_CHUNKS, SLOW_CHUNKS = 29, 46
CHUNKS = FAST_CHUNKS + SLOW_CHUNKS
VALUES = list(records(450)), list(records(700, seed=1))

Call = Literal["send", "commit", "abort"]


class Gate:
    """Blocks the calls of the slow partition until it is opened."""

    def __init__(self, call: Call) -> None:
        self.call = call
        self.open = threading.Event()
        self.reached = threading.Event()
        self.expired = False

    def passed(self, call: Call) -> None:
        if call == self.call:
            self.reached.set()
            self.expired |= not self.open.wait(HANG_SECONDS)


class SlowPublisher(MemoryPublisher):
    gate: Gate
    failing: list[str]

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        if self.failing and self.gate.call == "abort":
            raise AbortableError(self.failing.pop())
        self.gate.passed("send")
        return super().send(records)

    def commit(self) -> None:
        self.gate.passed("commit")
        super().commit()

    def abort(self) -> None:
        self.gate.passed("abort")
        super().abort()


class SlowTransport(MemoryTransport):
    """The calls of one partition are slow."""

    gate: Gate

    def publisher(self, partition: Partition, *, legacy: bool = False) -> MemoryPublisher:
        if partition != SLOW or legacy:
            return super().publisher(partition, legacy=legacy)
        made = SlowPublisher(self.broker, self._transactional_id(str(partition), legacy=legacy))
        made.gate, made.failing = self.gate, ["once"]
        return made


def process_with(made: MemoryBroker, gate: Gate) -> SimulatedProcess:
    def slowed(transport: MemoryTransport) -> Transport:
        slow = SlowTransport(transport.broker, transport.group, transport.state_topics)
        object.__setattr__(slow, "gate", gate)
        return slow

    return SimulatedProcess(
        made, settings(merge_every=None), executor=CommitThreads(), transport=slowed, grace=0.05
    )


def of(process: SimulatedProcess, kind: type[Any], partition: Partition) -> list[Any]:
    return [event for event in process.of(kind) if event.partition == partition]


def filled() -> MemoryBroker:
    made = broker(2)
    for number, values in enumerate(VALUES):
        fill(made, values, number)
    return made


@pytest.mark.parametrize("call", ["send", "commit", "abort"])
def test_other_partitions_continue(call: Call) -> None:
    made, gate = filled(), Gate(call)
    process = process_with(made, gate)
    process.until(gate.reached.is_set, TURNS)
    process.until(
        lambda: len(of(process, events.ChunkCommitted, Partition(TOPIC, 0))) == FAST_CHUNKS, TURNS
    )
    assert not of(process, events.ChunkCommitted, SLOW)
    assert not gate.expired
    assert max(event.waiting for event in of(process, events.RecordsRead, SLOW)) < 500 + 15

    gate.open.set()
    process.until(lambda: len(of(process, events.ChunkCommitted, SLOW)) == SLOW_CHUNKS, TURNS)
    assert sorted(published(made)) == expected()


@pytest.mark.parametrize("call", ["send", "commit", "abort"])
def test_a_graceful_shutdown_is_limited_by_its_grace_time(call: Call) -> None:
    made, gate = filled(), Gate(call)
    process = process_with(made, gate)
    process.until(gate.reached.is_set, TURNS)
    process.worker.stop()
    assert not gate.expired
    successor = SimulatedProcess(made, settings(merge_every=None))
    successor.until(lambda: len(published(made)) == CHUNKS)
    gate.open.set()  # too late: the transaction was aborted
    assert sorted(published(made)) == expected()


def expected() -> list[tuple[Any, ...]]:
    """The records that an undisturbed process publishes."""
    made = filled()
    SimulatedProcess(made, settings(merge_every=None)).until(lambda: len(published(made)) == CHUNKS)
    return sorted(published(made))
