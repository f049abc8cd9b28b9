"""A stream with a backlog publishes several chunks in one transaction, with the same bytes."""

from __future__ import annotations

from typing import Any

import pytest

from stream_fs.errors import (
    AbortableError,
    BadRecordRefused,
    FencedError,
    InvalidMessage,
    RetriableError,
)
from stream_fs.pipeline import events
from stream_fs.pipeline.model import update_chunk
from stream_fs.pipeline.partition import commit, intake, running
from stream_fs.pipeline.partition.commit import build_messages
from stream_fs.pipeline.partition.task import PartitionTask
from stream_fs.pipeline.ports import OutgoingRecord, Partition
from stream_fs.pipeline.transaction import Executor, run_inline
from tests.support.executors import never_run, run_slowly
from tests.support.memory_broker import Call
from tests.support.memory_transport import MemoryInput, MemoryTransport
from tests.support.settings import dead_letter_settings
from tests.support.simulated_process import (
    LETTERS,
    STATE,
    TOPIC,
    VALUES,
    Crash,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
    start,
    undisturbed,
)

LONG = 10.0
"""Seconds of linger that do not pass in a test."""
EXECUTORS = pytest.mark.parametrize("executor", [run_inline, run_slowly])


def lingering(task: PartitionTask) -> bool:
    return isinstance(task._state, running.Idle) and bool(task._state.intake.buffer)


def ends(process: SimulatedProcess) -> list[int]:
    """The last chunk of every transaction."""
    return [e.ranking.chunk for e in process.of(events.ChunkCommitted) if e.seconds is not None]


def assert_undisturbed(process: SimulatedProcess) -> None:
    with undisturbed(VALUES) as expected:
        assert published(process.broker) == published(expected)
        assert published(process.broker, LETTERS) == published(expected, LETTERS)


@pytest.fixture
def pace(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Makes updates take time in a process."""

    def set_pace(process: SimulatedProcess, seconds: float) -> None:
        def slowly(*given: Any) -> Any:
            process.now += seconds
            return update_chunk(*given)

        monkeypatch.setattr(intake, "update_chunk", slowly)

    return set_pace


@pytest.fixture
def updated(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the updated chunks."""
    found: list[int] = []

    def noted(*given: Any) -> Any:
        found.append(given[0].chunk + 1)
        return update_chunk(*given)

    monkeypatch.setattr(intake, "update_chunk", noted)
    return found


@EXECUTORS
def test_chunks_share_a_transaction_up_to_the_next_snapshot(executor: Executor) -> None:
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=4), executor=executor)
    assert process.run()
    assert ends(process) == [1, 5, 9]
    snapshots = [e.ranking.chunk for e in process.of(events.ChunkCommitted) if e.snapshot_bytes]
    assert snapshots == [1, 5, 9]
    assert_undisturbed(process)
    key = settings().keys(Partition(TOPIC, 0)).progress
    progress = [message for message in made.committed(STATE) if message.key == key]
    assert len(progress) == 1 + 3, "the first is that of the start"


@EXECUTORS
def test_the_last_chunks_of_a_backlog_do_not_linger(executor: Executor) -> None:
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=100), executor=executor)
    assert process.run()
    assert ends(process) == [1, 9]
    assert process.now < LONG
    assert_undisturbed(process)


@EXECUTORS
def test_a_stream_without_a_backlog_publishes_every_chunk_at_once(executor: Executor) -> None:
    made = broker()
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=100), executor=executor)
    values = list(records(20 + 5 * 15))
    for number in range(6):
        fill(made, values[:20] if not number else values[5 + number * 15 :][:15])
        assert process.run(30)
        assert ends(process) == list(range(1, number + 2))
    assert process.now < LONG


@pytest.mark.parametrize(("seconds", "most"), [(0.3, 1), (0.15, 2), (0.08, 3)])
def test_no_chunk_lingers_longer_than_configured(seconds: float, most: int, pace: Any) -> None:
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(linger=0.2, checkpoint_every=100))
    pace(process, seconds)
    assert process.run()
    found = ends(process)
    assert max(after - before for before, after in zip([0, *found], found, strict=False)) == most
    assert_undisturbed(process)


def test_a_chunk_lingers_for_the_whole_time_if_the_log_seems_to_hold_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Offsets without records count, too: transaction markers, compacted records."""
    monkeypatch.setattr(MemoryInput, "unread", lambda *_: 1_000_000)
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(linger=1.0, checkpoint_every=100))
    process.until(lambda: bool(process.of(events.ChunkCommitted)))
    began = process.now
    process.until(lambda: ends(process) == [1, 9])
    assert 1.0 < process.now - began < 1.5


@EXECUTORS
def test_records_of_an_open_transaction_are_no_backlog(executor: Executor) -> None:
    made = broker()
    fill(made, VALUES)
    producer = MemoryTransport(made, "other", {}).publisher(Partition(TOPIC, 0))
    assert producer.acquire()
    producer.begin()
    producer.send([OutgoingRecord(TOPIC, None, value, partition=0) for value in VALUES])
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=100), executor=executor)
    process.until(lambda: ends(process) == [1, 9])
    assert process.now < LONG


@pytest.mark.parametrize("linger", [0.0, LONG])
def test_the_next_owner_may_have_another_linger(linger: float) -> None:
    """Part of a transaction of several chunks is replayed, with or without linger."""
    made = broker()
    fill(made, VALUES)
    first = SimulatedProcess(
        made, settings(linger=LONG - linger, checkpoint_every=100), ("committed", 1)
    )
    first.run()
    successor = SimulatedProcess(made, settings(linger=linger, checkpoint_every=100))
    assert successor.run()
    (restored,) = successor.of(events.Restored)
    assert restored.chunk == 1
    assert not successor.of(events.ReplayDiverged)
    assert_undisturbed(successor)


@EXECUTORS
@pytest.mark.parametrize(
    ("call", "error", "after_effect"),
    [
        ("send", AbortableError, True),
        ("commit", RetriableError, True),
        ("commit", AbortableError, False),
        ("commit", FencedError, False),
    ],
)
def test_a_failed_call_is_repeated_with_the_same_rankings(
    call: Call,
    error: type[RetriableError | AbortableError | FencedError],
    after_effect: bool,
    executor: Executor,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranked: list[int] = []

    def noted(*given: Any) -> Any:
        ranked.append(given[3].state.chunk)
        return build_messages(*given)

    monkeypatch.setattr(commit, "build_messages", noted)
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=4), executor=executor)
    process.until(lambda: ends(process) == [1])
    made.fail_next(call, error("now and then"), after_effect=after_effect)
    assert process.run(900)
    assert process.of(events.Fenced if error is FencedError else events.TransactionFailed)
    if error is not FencedError:
        assert ranked == list(range(1, 10)), "each only once"
    assert_undisturbed(process)


@EXECUTORS
def test_chunks_before_a_refused_record_are_published(executor: Executor) -> None:
    made = broker()
    values = list(records(100))
    fill(made, [*values[:70], b"not a record", *values[70:]])
    process = SimulatedProcess(
        made,
        settings(
            linger=LONG, checkpoint_every=100, dead_letters=dead_letter_settings(policy="fail")
        ),
        executor=executor,
    )
    with pytest.raises(BadRecordRefused):
        process.run()
    with undisturbed(values[:70]) as expected:
        assert len(published(expected)) == 4
        assert published(made) == published(expected)
    assert process.now < LONG


@EXECUTORS
@pytest.mark.parametrize("where", ["update_chunk", "build_messages"])
def test_chunks_before_an_error_are_published(
    where: str, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if every chunk had its own transaction."""
    module: Any = {"update_chunk": intake, "build_messages": commit}[where]
    real = getattr(module, where)

    def refused(*given: Any) -> Any:
        made = real(*given)
        chunk = made.state.chunk if where == "update_chunk" else made.model.state.chunk
        if chunk == 5:
            raise InvalidMessage("a number is not finite")
        return made

    monkeypatch.setattr(module, where, refused)
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=100), executor=executor)
    with pytest.raises(InvalidMessage, match="not finite"):
        process.run()
    assert ends(process) == [1, 4]
    process.worker.stop()
    monkeypatch.undo()
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)[:4]


def test_chunks_with_many_dead_letters_do_not_linger(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_DEAD_LETTER_BYTES", len(b"not a record"))
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=100))
    assert process.run()
    letters = [e.ranking.chunk for e in process.of(events.ChunkCommitted) if e.dead_letters]
    assert ends(process) == sorted({1, *letters, 9})
    assert_undisturbed(process)


def test_chunks_linger_behind_a_snapshot_in_flight(updated: list[int]) -> None:
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=4), executor=never_run)
    assert process.run(100)
    assert updated == [1, 2, 3, 4, 5], "the first and the fifth have a snapshot"
    assert published(made) == []


def test_a_chunk_without_a_backlog_does_not_wait_for_other_partitions() -> None:
    """It is published in the turn in which it is updated."""
    made = broker(2)
    fill(made, list(records(20 + 15)), 1)
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=100))
    process.until(lambda: len(process.of(events.ChunkCommitted)) == 2)
    process.run(10)
    fill(made, list(records(15)), 1)
    process.worker._poll(0.0)
    process.worker._advance_all()
    assert len(process.of(events.ChunkCommitted)) == 3


def test_no_chunk_lingers_if_a_turn_takes_longer() -> None:
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(linger=0.5, checkpoint_every=100))
    advance = process.worker._merge.advance

    def slowly() -> None:
        process.now += 0.6
        advance()

    process.worker._merge.advance = slowly  # type: ignore[method-assign]  # as many partitions would
    assert process.run()
    assert ends(process) == list(range(1, 10))


def test_records_of_lingering_chunks_are_reported_as_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Their updates are reported later, and subtracted then."""
    monkeypatch.setattr(MemoryInput, "unread", lambda *_: 1_000_000)
    made = broker()
    fill(made, list(records(20 + 15 + 7)))
    process = SimulatedProcess(made, settings(linger=LONG, checkpoint_every=100))
    process.until(
        lambda: any(lingering(task) for task in process.worker.tasks) and bool(ends(process))
    )
    fill(made, list(records(3)))
    process.until(lambda: len(process.of(events.RecordsRead)) == 2)
    assert process.of(events.RecordsRead)[-1].waiting == 15 + 7 + 3
    assert len(process.of(events.ChunkUpdated)) == 1


@pytest.mark.parametrize("executor", [run_inline, never_run])
def test_a_graceful_shutdown_leaves_lingering_chunks_to_the_next_owner(
    executor: Executor, updated: list[int]
) -> None:
    made = broker()
    fill(made, VALUES)
    here = settings(linger=LONG, checkpoint_every=100)
    start(made, here)
    process = SimulatedProcess(made, here, executor=executor)
    process.until(lambda: len(updated) == (4 if executor is run_inline else 2))
    process.worker.stop()
    assert len(published(made)) == 1
    successor = SimulatedProcess(made, here)
    assert successor.run()
    (restored,) = successor.of(events.Restored)
    assert (restored.chunk, restored.behind) == (1, 0)
    assert_undisturbed(successor)


def test_an_error_between_two_reported_updates_changes_nothing() -> None:
    made = broker()
    fill(made, VALUES)
    here = settings(linger=LONG, checkpoint_every=100)
    first = SimulatedProcess(made, here, ("updated", 4))
    with pytest.raises(Crash):
        first.until(lambda: False)
    first.worker.stop()
    assert len(published(made)) == 1
    successor = SimulatedProcess(made, here)
    assert successor.run()
    assert_undisturbed(successor)
