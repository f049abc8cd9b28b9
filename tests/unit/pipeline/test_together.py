"""A stream that is behind publishes several chunks in one transaction: nobody can tell."""

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
from stream_fs.pipeline.settings import DeadLetterSettings
from stream_fs.pipeline.transaction import Executor, run_inline
from tests.support.memory_broker import Call
from tests.support.memory_transport import MemoryInput, MemoryTransport
from tests.unit.pipeline.lives import (
    LETTERS,
    STATE,
    TOPIC,
    Crash,
    Life,
    broker,
    fill,
    published,
    records,
    settings,
    start,
    undisturbed,
)
from tests.unit.pipeline.test_ahead import slow, stuck
from tests.unit.pipeline.test_recovery import STEPS, VALUES

LONG = 10.0
"""Seconds of waiting that are not over in a test."""
ASIDES = pytest.mark.parametrize("executor", [run_inline, slow])


def lingering(task: PartitionTask) -> bool:
    return isinstance(task._state, running.Idle) and bool(task._state.intake.buffer)


def ends(life: Life) -> list[int]:
    """The last chunk of every transaction."""
    return [e.ranking.chunk for e in life.of(events.ChunkCommitted) if e.seconds is not None]


def assert_as_if_undisturbed(life: Life) -> None:
    with undisturbed(VALUES) as expected:
        assert published(life.broker) == published(expected)
        assert published(life.broker, LETTERS) == published(expected, LETTERS)


@pytest.fixture
def pace(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Lets folding take time in a life."""

    def set_pace(life: Life, seconds: float) -> None:
        def slowly(*given: Any) -> Any:
            life.now += seconds
            return update_chunk(*given)

        monkeypatch.setattr(intake, "update_chunk", slowly)

    return set_pace


@pytest.fixture
def folded(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The numbers of the chunks that were folded."""
    found: list[int] = []

    def noted(*given: Any) -> Any:
        found.append(given[0].chunk + 1)
        return update_chunk(*given)

    monkeypatch.setattr(intake, "update_chunk", noted)
    return found


@ASIDES
def test_chunks_go_together_up_to_the_next_snapshot(executor: Executor) -> None:
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(linger=LONG, checkpoint_every=4), executor=executor)
    assert life.run()
    assert ends(life) == [1, 5, 9]
    snapshots = [e.ranking.chunk for e in life.of(events.ChunkCommitted) if e.snapshot_bytes]
    assert snapshots == [1, 5, 9]
    assert_as_if_undisturbed(life)
    key = settings().keys(Partition(TOPIC, 0)).progress
    progress = [message for message in made.committed(STATE) if message.key == key]
    assert len(progress) == 1 + 3, "the first is that of the start"


@ASIDES
def test_the_last_ones_wait_for_nobody(executor: Executor) -> None:
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(linger=LONG, checkpoint_every=100), executor=executor)
    assert life.run()
    assert ends(life) == [1, 9]
    assert life.now < LONG
    assert_as_if_undisturbed(life)


@ASIDES
def test_a_stream_that_is_not_behind_publishes_every_chunk_at_once(executor: Executor) -> None:
    made = broker()
    life = Life(made, settings(linger=LONG, checkpoint_every=100), executor=executor)
    values = list(records(20 + 5 * 15))
    for number in range(6):
        fill(made, values[:20] if not number else values[5 + number * 15 :][:15])
        assert life.run(30)
        assert ends(life) == list(range(1, number + 2))
    assert life.now < LONG


@pytest.mark.parametrize(("seconds", "most"), [(0.3, 1), (0.15, 2), (0.08, 3)])
def test_none_waits_longer_than_it_may(seconds: float, most: int, pace: Any) -> None:
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(linger=0.2, checkpoint_every=100))
    pace(life, seconds)
    assert life.run()
    told = ends(life)
    assert max(after - before for before, after in zip([0, *told], told, strict=False)) == most
    assert_as_if_undisturbed(life)


def test_what_the_log_seems_to_hold_is_waited_for_so_long_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Offsets count that are no records: the markers of transactions, what was compacted."""
    monkeypatch.setattr(MemoryInput, "unread", lambda *_: 1_000_000)
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(linger=1.0, checkpoint_every=100))
    life.until(lambda: bool(life.of(events.ChunkCommitted)))
    began = life.now
    life.until(lambda: ends(life) == [1, 9])
    assert 1.0 < life.now - began < 1.5


@ASIDES
def test_the_records_of_an_open_transaction_are_not_waited_for(executor: Executor) -> None:
    made = broker()
    fill(made, VALUES)
    producer = MemoryTransport(made, "other", {}).publisher(Partition(TOPIC, 0))
    assert producer.acquire()
    producer.begin()
    producer.send([OutgoingRecord(TOPIC, None, value, partition=0) for value in VALUES])
    life = Life(made, settings(linger=LONG, checkpoint_every=100), executor=executor)
    life.until(lambda: ends(life) == [1, 9])
    assert life.now < LONG


@ASIDES
@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("survived", [0, 1, 2])
def test_a_crash_at_any_step_changes_no_published_byte(
    step: str, survived: int, executor: Executor
) -> None:
    made = broker()
    fill(made, VALUES)
    here = settings(linger=LONG, checkpoint_every=4)
    assert not Life(made, here, (step, survived), executor=executor).run()
    heir = Life(made, here, executor=executor)
    assert heir.run()
    assert not heir.of(events.ReplayDiverged)
    assert_as_if_undisturbed(heir)


@pytest.mark.parametrize("linger", [0.0, LONG])
def test_whoever_takes_over_may_wait_otherwise(linger: float) -> None:
    """A transaction of several chunks, computed again in part, by one that waits or does not."""
    made = broker()
    fill(made, VALUES)
    first = Life(made, settings(linger=LONG - linger, checkpoint_every=100), ("committed", 1))
    first.run()
    heir = Life(made, settings(linger=linger, checkpoint_every=100))
    assert heir.run()
    (restored,) = heir.of(events.Restored)
    assert restored.chunk == 1
    assert not heir.of(events.ReplayDiverged)
    assert_as_if_undisturbed(heir)


@ASIDES
@pytest.mark.parametrize(
    ("call", "error", "after_effect"),
    [
        ("send", AbortableError, True),
        ("commit", RetriableError, True),
        ("commit", AbortableError, False),
        ("commit", FencedError, False),
    ],
)
def test_a_failed_call_is_made_good(
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
    life = Life(made, settings(linger=LONG, checkpoint_every=4), executor=executor)
    life.until(lambda: ends(life) == [1])
    made.fail_next(call, error("now and then"), after_effect=after_effect)
    assert life.run(900)
    assert life.of(events.Fenced if error is FencedError else events.TransactionFailed)
    if error is not FencedError:
        assert ranked == list(range(1, 10)), "each once"
    assert_as_if_undisturbed(life)


@ASIDES
def test_what_comes_before_a_refused_record_is_published(executor: Executor) -> None:
    made = broker()
    values = list(records(100))
    fill(made, [*values[:70], b"not a record", *values[70:]])
    life = Life(
        made,
        settings(linger=LONG, checkpoint_every=100, dead_letters=DeadLetterSettings(policy="fail")),
        executor=executor,
    )
    with pytest.raises(BadRecordRefused):
        life.run()
    with undisturbed(values[:70]) as expected:
        assert len(published(expected)) == 4
        assert published(made) == published(expected)
    assert life.now < LONG


@ASIDES
@pytest.mark.parametrize("where", ["update_chunk", "build_messages"])
def test_what_comes_before_an_error_is_published(
    where: str, executor: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As it would be if every chunk had its own transaction."""
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
    life = Life(made, settings(linger=LONG, checkpoint_every=100), executor=executor)
    with pytest.raises(InvalidMessage, match="not finite"):
        life.run()
    assert ends(life) == [1, 4]
    life.worker.stop()
    monkeypatch.undo()
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)[:4]


def test_many_dead_letters_wait_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "_DEAD_LETTER_BYTES", len(b"not a record"))
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(linger=LONG, checkpoint_every=100))
    assert life.run()
    letters = [e.ranking.chunk for e in life.of(events.ChunkCommitted) if e.letters]
    assert ends(life) == sorted({1, *letters, 9})
    assert_as_if_undisturbed(life)


def test_chunks_wait_behind_a_snapshot_that_is_under_way(folded: list[int]) -> None:
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(linger=LONG, checkpoint_every=4), executor=stuck)
    assert life.run(100)
    assert folded == [1, 2, 3, 4, 5], "the first and the fifth have one"
    assert published(made) == []


def test_who_keeps_up_does_not_wait_for_the_others() -> None:
    """Published in the turn in which it is folded, whatever others have to do before the next."""
    made = broker(2)
    fill(made, list(records(20 + 15)), 1)
    life = Life(made, settings(linger=LONG, checkpoint_every=100))
    life.until(lambda: len(life.of(events.ChunkCommitted)) == 2)
    life.run(10)
    fill(made, list(records(15)), 1)
    life.worker._poll(0.0)
    life.worker._advance_all()
    assert len(life.of(events.ChunkCommitted)) == 3


def test_where_everybody_takes_long_turns_none_waits_for_its_next() -> None:
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(linger=0.5, checkpoint_every=100))
    others = life.worker._merge.advance

    def slowly() -> None:
        life.now += 0.6
        others()

    life.worker._merge.advance = slowly  # type: ignore[method-assign]  # as many partitions would
    assert life.run()
    assert ends(life) == list(range(1, 10))


def test_the_records_of_chunks_that_wait_are_told_as_waiting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """They are told as folded later, and taken off then."""
    monkeypatch.setattr(MemoryInput, "unread", lambda *_: 1_000_000)
    made = broker()
    fill(made, list(records(20 + 15 + 7)))
    life = Life(made, settings(linger=LONG, checkpoint_every=100))
    life.until(lambda: any(lingering(task) for task in life.worker.tasks) and bool(ends(life)))
    fill(made, list(records(3)))
    life.until(lambda: len(life.of(events.RecordsRead)) == 2)
    assert life.of(events.RecordsRead)[-1].waiting == 15 + 7 + 3
    assert len(life.of(events.ChunkUpdated)) == 1


@pytest.mark.parametrize("executor", [run_inline, stuck])
def test_an_orderly_end_leaves_what_waits_to_the_next_owner(
    executor: Executor, folded: list[int]
) -> None:
    made = broker()
    fill(made, VALUES)
    here = settings(linger=LONG, checkpoint_every=100)
    start(made, here)
    life = Life(made, here, executor=executor)
    life.until(lambda: len(folded) == (4 if executor is run_inline else 2))
    life.worker.stop()
    assert len(published(made)) == 1
    heir = Life(made, here)
    assert heir.run()
    (restored,) = heir.of(events.Restored)
    assert (restored.chunk, restored.behind) == (1, 0)
    assert_as_if_undisturbed(heir)


def test_an_error_between_two_chunks_that_are_told_changes_nothing() -> None:
    made = broker()
    fill(made, VALUES)
    here = settings(linger=LONG, checkpoint_every=100)
    first = Life(made, here, ("updated", 4))
    with pytest.raises(Crash):
        first.until(lambda: False)
    first.worker.stop()
    assert len(published(made)) == 1
    heir = Life(made, here)
    assert heir.run()
    assert_as_if_undisturbed(heir)
