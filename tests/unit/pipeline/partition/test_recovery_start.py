"""A partition that starts at its end keeps that offset over crashes before its first chunk."""

from __future__ import annotations

import json
from typing import Any

from stream_fs.errors import RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.administration import export_model, read_position, reset, reset_to_offset
from stream_fs.pipeline.ports import Partition
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryTransport
from tests.support.merged_stream import settle
from tests.support.simulated_process import (
    STATE,
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
)

PLACE = Partition(TOPIC, 0)
VALUES = list(records(100))
LATEST = settings(start="latest")


def begun() -> MemoryBroker:
    """A process has started behind 10 records, read 12 more, and crashed."""
    made = broker()
    fill(made, VALUES[:10])
    process = SimulatedProcess(made, LATEST)
    process.until(lambda: bool(process.of(events.Restored)))
    fill(made, VALUES[10:22])
    assert process.run(20)
    process.kill()
    assert not published(made)
    return made


def ranges(made: MemoryBroker) -> list[tuple[int, int, int]]:
    found: list[dict[str, Any]] = [json.loads(value) for _, value, _ in published(made)]
    return [(r["sequence"], r["offsets"]["from"], r["offsets"]["next"]) for r in found]


def test_the_start_is_kept_over_a_crash() -> None:
    made = begun()
    fill(made, VALUES[22:60])
    assert SimulatedProcess(made, LATEST).run()
    assert ranges(made) == [(1, 10, 30), (2, 30, 45), (3, 45, 60)]


def test_the_start_is_kept_if_the_first_attempt_to_commit_it_fails() -> None:
    made = broker()
    fill(made, VALUES[:10])
    made.fail_next("send", RetriableError("now and then"))
    process = SimulatedProcess(made, LATEST)
    process.until(lambda: bool(process.of(events.TransactionFailed)))
    fill(made, VALUES[10:50])
    assert process.run()
    assert ranges(made) == [(1, 10, 30), (2, 30, 45)]


def test_the_start_can_be_read_and_moved() -> None:
    made = begun()
    transport = MemoryTransport(made, "g", {TOPIC: STATE})
    found = read_position(transport, LATEST, PLACE)
    assert found.progress is not None
    assert (found.progress.chunk, found.next_offset) == (0, 10)
    assert export_model(transport, LATEST, PLACE).progress == found.progress
    reset_to_offset(transport, LATEST, PLACE, 5, keep_model=False)
    fill(made, VALUES[22:60])
    assert SimulatedProcess(made, LATEST).run()
    assert ranges(made)[0] == (1, 5, 25)


def test_after_a_reset_it_starts_at_the_end_of_that_time() -> None:
    made = begun()
    reset(MemoryTransport(made, "g", {TOPIC: STATE}), LATEST, PLACE)
    process = SimulatedProcess(made, LATEST)
    process.until(lambda: bool(process.of(events.Restored)))
    process.kill()
    fill(made, VALUES[22:60])
    assert SimulatedProcess(made, LATEST).run()
    assert ranges(made)[0] == (1, 22, 42)


def test_the_partition_is_merged_from_its_first_chunk_on() -> None:
    made = broker(2)
    latest = settings(start="latest", checkpoint_every=100, merge_every=1.0)
    process = SimulatedProcess(made, latest)
    process.until(lambda: len(process.of(events.Restored)) == 2)
    for number in range(2):
        fill(made, VALUES[:40], number)
    settle(process)
    merged = process.of(events.MergedCommitted)[-1]
    assert len(merged.parts) == 2
