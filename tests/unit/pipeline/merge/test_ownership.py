"""Ownership of the merge: no merged ranking is lost or repeated when it fails or moves."""

from __future__ import annotations

import pytest

from stream_fs.errors import AbortableError, FencedError, NoOwnership, RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.fencing import MAX_FENCINGS
from stream_fs.pipeline.ports import OutgoingRecord
from tests.support.memory_broker import Call, MemoryBroker
from tests.support.merged_stream import (
    EVERY,
    last_sources,
    merged_rankings,
    merging,
    more,
    outsider,
    sequences,
    settle,
    sources,
    stream,
)
from tests.support.simulated_process import STATE, SimulatedProcess

STEPS = ["merge begun", "merge sent", "merge committed"]


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("survived", [0, 1, 2])
def test_a_crash_at_any_step_leaves_no_gap_and_no_repetition(step: str, survived: int) -> None:
    made = stream(count=20)
    deaths = 0
    for number in range(8):
        process = SimulatedProcess(made, merging(checkpoint_every=1), (step, survived))
        for again in range(survived + 1):
            more(made, number % 3, 15, seed=10 * number + again)
            if not (process.run(40) and later(process).run(40)):
                deaths += 1
                break
        else:
            process.kill()
        undisturbed(made)
    found = merged_rankings(made)
    assert deaths > 3
    assert [ranking["sequence"] for ranking in found] == list(range(1, len(found) + 1))
    listed = [tuple(sources(ranking).items()) for ranking in found]
    assert len(set(listed)) == len(listed) > 5


def later(process: SimulatedProcess) -> SimulatedProcess:
    """Let the time for the next merged ranking pass."""
    process.now += EVERY
    return process


def undisturbed(made: MemoryBroker) -> None:
    """Run a process that publishes one merged ranking."""
    process = SimulatedProcess(made, merging(checkpoint_every=1))
    assert process.run(60)
    process.kill()


@pytest.mark.parametrize(
    ("call", "error", "after_effect"),
    [
        ("begin", RetriableError, False),
        ("send", RetriableError, False),
        ("send", AbortableError, True),
        ("commit", RetriableError, False),
        ("commit", RetriableError, True),
        ("commit", AbortableError, False),
    ],
)
def test_a_failed_call_is_repeated(
    call: Call, error: type[RetriableError | AbortableError], after_effect: bool
) -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    settle(process, rounds=1)
    more(made, 1, 60, seed=9)
    assert process.run(50)
    assert sequences(made) == [1]
    made.fail_next(
        call, error("now and then"), after_effect=after_effect
    )  # the next is the merge's
    settle(process)
    assert [event.error for event in process.of(events.MergeFailed)] == ["now and then"]
    assert not process.of(events.TransactionFailed)
    assert sequences(made) == [1, 2]


def test_acquiring_is_retried() -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    for _ in range(4):  # of three tasks and of the merge
        made.fail_next("acquire", RetriableError("later"))
    settle(process)
    assert [event.error for event in process.of(events.MergeFailed)] == ["later"]
    assert len(process.of(events.MergeAcquired)) == 1
    assert last_sources(made) == {0: 1, 1: 1, 2: 1}


def test_a_zombie_is_fenced_and_the_next_owner_continues() -> None:
    made = stream(count=20)
    zombie = SimulatedProcess(made, merging(checkpoint_every=1))
    settle(zombie)
    assert sequences(made) == [1]
    zombie.kill()  # the group believes so
    successor = SimulatedProcess(made, merging(checkpoint_every=1))
    for number in (0, 1):
        more(made, number, 15)
        settle(successor)
    (taken,) = successor.of(events.MergeAcquired)
    assert taken.sequence == 1
    assert sequences(made) == [1, 2, 3]
    zombie.worker._tasks.clear()  # or these would be fenced first
    zombie.now += EVERY
    assert zombie.run(200)
    assert [event.outcome for event in zombie.of(events.MergeFailed)] == ["fenced"]
    assert sequences(made) == [1, 2, 3]


def test_consecutive_fencings_are_final() -> None:
    made = stream(count=20)
    process = SimulatedProcess(made, merging(checkpoint_every=1))
    settle(process)
    with pytest.raises(NoOwnership, match=r"has acquired the merge 5 times in a row"):
        contested(process)
    assert [event.outcome for event in process.of(events.MergeFailed)] == ["fenced"] * 5


def test_a_commit_of_unknown_outcome_does_not_count_as_fencing() -> None:
    made = stream(count=20)
    process = SimulatedProcess(made, merging(checkpoint_every=1))
    settle(process)
    for number in range(MAX_FENCINGS + 1):
        more(made, 0, 15, seed=number)
        assert process.run(50)  # the next commit is the merge's
        made.fail_next("commit", FencedError("no answer", outcome_unknown=True))
        settle(process)
    outcomes = [event.outcome for event in process.of(events.MergeFailed)]
    assert outcomes == ["undecided"] * (MAX_FENCINGS + 1)
    assert not process.of(events.Fenced)
    assert sequences(made) == list(range(1, MAX_FENCINGS + 3))


def contested(process: SimulatedProcess) -> None:
    """Another process acquires the merge whenever there is something to publish."""
    for number in range(20):
        outsider(process.broker).merge_publisher().acquire()
        more(process.broker, 0, 15, seed=number)
        assert process.run(60)
        process.now += EVERY


def test_the_merge_moves_with_the_first_partition() -> None:
    made = stream(partitions=4, count=20)
    one = SimulatedProcess(made, merging(checkpoint_every=1))
    settle(one)
    two = SimulatedProcess(made, merging(checkpoint_every=1))  # gets 1 and 3
    settle(two)
    assert not two.of(events.MergeAcquired)
    one.worker.stop()
    assert len(one.of(events.MergeReleased)) == 1
    for number in range(4):
        more(made, number, 15, seed=number)
    settle(two)
    assert two.of(events.MergeAcquired)
    assert last_sources(made) == dict.fromkeys(range(4), 2)
    assert sequences(made) == list(range(1, len(merged_rankings(made)) + 1))
    two.worker.stop()
    assert len(two.of(events.MergeReleased)) == 1


def test_a_task_finds_its_progress_behind_many_merged_rankings() -> None:
    made = stream()
    first = SimulatedProcess(made, merging())
    settle(first)
    first.kill()
    publisher = outsider(made).merge_publisher()
    publisher.acquire()
    (last,) = [m.value for m in made.committed(STATE) if m.key == merging().owner.merge_key][-1:]
    for _ in range(1000):
        publisher.begin()
        publisher.send([OutgoingRecord(STATE, merging().owner.merge_key, last, partition=0)])
        publisher.commit()
    second = SimulatedProcess(made, merging())
    settle(second)
    restored = {event.partition.number: event for event in second.of(events.Restored)}
    assert restored[0].chunk + restored[0].behind == 3
