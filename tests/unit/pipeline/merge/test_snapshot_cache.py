"""The models of a merge: partitions that are added, reset, or cannot be read."""

from __future__ import annotations

from stream_fs.pipeline import events
from stream_fs.pipeline.administration import reset, reset_to_offset
from stream_fs.pipeline.merge import snapshot_cache
from stream_fs.pipeline.ports import OutgoingRecord, Partition
from stream_fs.selector import View, params
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryPublisher
from tests.support.merged_stream import (
    give,
    last_sources,
    merged_rankings,
    merging,
    more,
    outsider,
    settle,
    stream,
)
from tests.support.simulated_process import DIMENSIONS, STATE, TOPIC, SimulatedProcess, broker

LAST = Partition(TOPIC, 2)


def test_a_partition_without_a_full_chunk_does_not_block_the_merge() -> None:
    made = broker(3)
    for number, count in enumerate((60, 5, 60)):
        more(made, number, count, seed=number)
    process = SimulatedProcess(made, merging())
    settle(process)
    assert last_sources(made) == {0: 1, 2: 1}
    assert process.of(events.MergedCommitted)[-1].partitions == 3
    more(made, 1, 30, seed=3)
    settle(process)
    assert last_sources(made) == {0: 1, 1: 1, 2: 1}


def test_added_partitions_are_merged() -> None:
    made = stream(partitions=1)
    process = SimulatedProcess(made, merging())
    settle(process)
    assert merged_rankings(made) == []
    made.grow(STATE, 3)
    made.grow(TOPIC, 3)
    for number in (1, 2):
        more(made, number, seed=number)
    settle(process)
    assert last_sources(made) == {0: 1, 1: 1, 2: 1}


def test_a_snapshot_of_another_configuration_is_left_out() -> None:
    made = stream()
    other = params([View(name, size) for name, size in DIMENSIONS.items()], 3, first_rows=10)
    foreign = SimulatedProcess(made, merging(params=other, merge_every=None))
    foreign.until(lambda: made.log(STATE, 2).end > 3)
    foreign.kill()
    for number in (0, 1):  # these start anew
        reset(outsider(made), merging(), Partition(TOPIC, number))
    process = SimulatedProcess(made, merging())
    give(made, (process, [0, 1]))  # the task of the last one would refuse to begin
    settle(process)
    assert last_sources(made) == {0: 1, 1: 1}
    (skipped,) = process.of(events.SourceSkipped)
    assert (skipped.partition, skipped.reason) == (LAST, "incompatible")
    assert "clusters: 3 → 2" in skipped.detail


def test_a_damaged_snapshot_is_reported_once_and_blocks_no_other() -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    settle(process)
    process.kill()
    for entry in made.log(STATE, 1).entries:
        if entry.key is not None and entry.key.endswith(b"/0"):  # a part of a snapshot
            object.__setattr__(entry, "value", b"torn")
    successor = SimulatedProcess(made, merging())
    give(made, (successor, [0]))
    more(made, 0)
    settle(successor, rounds=3)
    assert last_sources(made) == {0: 7, 2: 1}
    (skipped,) = successor.of(events.SourceSkipped)
    assert (skipped.partition, skipped.reason) == (Partition(TOPIC, 1), "damaged")


def test_an_open_transaction_of_a_new_partition_does_not_block_the_merge() -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    give(made, (process, [0, 1]))
    open_transaction(made)
    wait_out(process)
    assert last_sources(made) == {0: 1, 1: 1}
    (skipped,) = process.of(events.SourceSkipped)
    assert (skipped.partition, skipped.reason) == (LAST, "undecided")


def test_a_listed_partition_that_cannot_be_read_is_waited_for() -> None:
    made = stream()
    first = SimulatedProcess(made, merging())
    settle(first)
    first.kill()
    successor = SimulatedProcess(made, merging())
    give(made, (successor, [0, 1]))
    left_open = open_transaction(made)
    more(made, 0)
    count = len(merged_rankings(made))
    wait_out(successor)
    assert len(merged_rankings(made)) == count
    left_open.abort()
    settle(successor)
    assert last_sources(made) == {0: 7, 1: 1, 2: 1}


def test_a_known_model_is_merged_while_an_open_transaction_hides_a_newer_one() -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    settle(process)
    give(made, (process, [0, 1]))
    assert process.run(5)
    open_transaction(made)
    more(made, 0)
    wait_out(process)
    assert last_sources(made) == {0: 7, 1: 1, 2: 1}


def open_transaction(made: MemoryBroker) -> MemoryPublisher:
    """A process crashed within a transaction on the last partition."""
    publisher = outsider(made).publisher(LAST)
    publisher.acquire()
    publisher.begin()
    publisher.send([OutgoingRecord(STATE, b"open", b"", partition=LAST.number)])
    return publisher


def test_a_reset_partition_is_not_merged_until_it_has_a_chunk() -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    settle(process)
    reset_to_offset(outsider(made), merging(), Partition(TOPIC, 1), 60, keep_model=False)
    more(made, 0)
    settle(process)
    assert last_sources(made) == {0: 7, 2: 1}
    more(made, 1)  # its first three chunks; the first is saved, as of a new partition
    settle(process)
    assert last_sources(made) == {0: 7, 1: 1, 2: 1}


def wait_out(process: SimulatedProcess) -> None:
    """Run until the time to read a partition is over."""
    for _ in range(3):
        assert process.run(100 + snapshot_cache.TIMEOUT_STEPS)
        process.now += snapshot_cache.TIMEOUT_SECONDS
    assert process.run(100)
