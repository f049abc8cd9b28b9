"""After any crash or failure, the published bytes are those of an undisturbed process."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any

import pytest

from stream_fs.checkpoint import decode_progress, encode_progress
from stream_fs.errors import AbortableError, RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Executor, run_inline
from stream_fs.wire import RankingFormat, decode_ranking, digest, encode_ranking
from tests.support.executors import run_slowly
from tests.support.memory_broker import Call, MemoryBroker
from tests.support.simulated_process import (
    LETTERS,
    STATE,
    STEPS,
    TOPIC,
    VALUES,
    Crash,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
    undisturbed,
)

LONG = 10.0
"""Seconds of linger that do not pass in a test."""
EXECUTORS = pytest.mark.parametrize("executor", [run_inline, run_slowly])
BATCHES = pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"linger": 0.0, "checkpoint_every": 3}, id="single-chunks"),
        pytest.param({"linger": LONG, "checkpoint_every": 4}, id="batches"),
    ],
)


def assert_undisturbed(made: MemoryBroker) -> None:
    """Rankings and dead letters are complete and have the same bytes as without a failure."""
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)
        assert published(made, LETTERS) == published(expected, LETTERS)


def test_an_undisturbed_run_is_complete() -> None:
    with undisturbed(VALUES) as made:
        rankings = [json.loads(value) for _, value, _ in published(made)]
        assert [r["sequence"] for r in rankings] == list(range(1, 10))
        for before, after in itertools.pairwise(rankings):
            assert before["offsets"]["next"] == after["offsets"]["from"]
        assert sum(r["records"]["dead_letters"] for r in rankings) == len(published(made, LETTERS))
        assert len(published(made, LETTERS)) > 5


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("survived", [0, 1, 2, 4])
@EXECUTORS
@BATCHES
def test_a_crash_at_any_step_changes_no_published_byte(
    step: str, survived: int, executor: Executor, changes: dict[str, Any]
) -> None:
    made = broker()
    fill(made, VALUES)
    here = settings(**changes)
    first = SimulatedProcess(made, here, (step, survived), executor=executor)
    assert first.run() is (first.steps[step] <= survived)
    assert first.steps[step] == min(survived + 1, occurrences(step, here))
    successor = SimulatedProcess(made, here, executor=executor)
    assert successor.run()
    assert not successor.of(events.ReplayDiverged)
    assert_undisturbed(made)


def occurrences(step: str, here: StreamSettings) -> int:
    """How many times an undisturbed process reaches a step: nine chunks in some transactions."""
    if step == "updated":
        return 9
    return 3 if here.linger or step == "snapshot sent" else 9


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("survived", [0, 1, 2, 4, 6])
def test_an_error_and_a_graceful_shutdown_at_any_step_change_no_published_byte(
    step: str, survived: int
) -> None:
    """A commit may be done and not installed, for lack of memory, and must not be undone."""
    made = broker()
    fill(made, VALUES)
    first = SimulatedProcess(made, settings(), (step, survived))
    with suppress(Crash):
        for _ in range(300):
            first.worker.run_once()
    first.worker.stop()
    assert SimulatedProcess(made, settings()).run()
    assert_undisturbed(made)


def test_many_crashes_in_a_row_change_no_published_byte() -> None:
    made = broker()
    fill(made, VALUES)
    crashes = 0
    for number in range(40):
        if not SimulatedProcess(made, settings(), (STEPS[number % len(STEPS)], 0)).run(60):
            crashes += 1
    assert SimulatedProcess(made, settings()).run()
    assert crashes > 15
    assert_undisturbed(made)


@pytest.mark.parametrize(
    ("call", "error", "after_effect"),
    [
        ("begin", RetriableError, False),
        ("begin", AbortableError, False),
        ("send", RetriableError, False),
        ("send", AbortableError, False),
        ("send", AbortableError, True),
        ("commit", RetriableError, False),
        ("commit", RetriableError, True),
        ("commit", AbortableError, False),
        ("abort", RetriableError, False),
    ],
)
@EXECUTORS
def test_a_failed_call_is_repeated(
    call: Call,
    error: type[RetriableError | AbortableError],
    after_effect: bool,
    executor: Executor,
) -> None:
    made = broker()
    fill(made, VALUES)
    if call == "abort":
        made.fail_next("send", AbortableError("first"))
    made.fail_next(call, error("now and then"), after_effect=after_effect)
    process = SimulatedProcess(made, settings(), executor=executor)
    assert process.run(600)
    assert len(process.of(events.TransactionFailed)) == (2 if call == "abort" else 1)
    assert_undisturbed(made)


def test_a_replayed_chunk_is_compared_with_the_published_one() -> None:
    made = broker()
    fill(made, VALUES)
    assert not SimulatedProcess(made, settings(), ("updated", 5)).run()
    second = SimulatedProcess(made, settings())
    assert second.run()
    (restored,) = second.of(events.Restored)
    assert (restored.chunk, restored.behind) == (4, 1)
    assert [e.replayed for e in second.of(events.ChunkUpdated)][:2] == [True, False]
    assert not second.of(events.ReplayDiverged)


def without_imputed(value: bytes, format: RankingFormat) -> bytes:
    """A ranking as releases before the field encoded it."""
    ranking = decode_ranking(value, format)
    records = replace(ranking.records, imputed=None)
    return encode_ranking(replace(ranking, records=records), format)


@pytest.mark.parametrize("format", ["json", "msgpack"])
@pytest.mark.parametrize(
    ("earlier", "diverged"),
    [
        pytest.param(without_imputed, 0, id="before-the-field"),
        pytest.param(lambda value, _: value + b" ", 1, id="another-ranking"),
    ],
)
def test_the_digest_of_a_replayed_ranking_may_be_that_without_imputed_rows(
    earlier: Callable[[bytes, RankingFormat], bytes], diverged: int, format: RankingFormat
) -> None:
    made = broker()
    fill(made, VALUES)
    here = settings(output_format=format)
    assert not SimulatedProcess(made, here, ("updated", 5)).run()
    value = published(made)[-1][1]
    key = here.keys(Partition(TOPIC, 0)).progress
    (*_, last) = [message for message in made.committed(STATE) if message.key == key]
    progress = decode_progress(last.value or b"")
    assert progress.digest == digest(value)
    earlier_digest = digest(earlier(value, format))
    assert earlier_digest != progress.digest
    made.produce(STATE, encode_progress(replace(progress, digest=earlier_digest)), key=key)
    second = SimulatedProcess(made, here)
    assert second.run()
    assert second.of(events.Restored)[0].behind == 1
    assert len(second.of(events.ReplayDiverged)) == diverged


def test_a_graceful_shutdown_leaves_nothing_to_replay() -> None:
    made = broker()
    fill(made, VALUES[:100])
    first = SimulatedProcess(made, settings())
    assert first.run()
    first.worker.stop()
    assert first.of(events.SnapshotCommitted)
    fill(made, VALUES[100:])
    second = SimulatedProcess(made, settings())
    assert second.run()
    (restored,) = second.of(events.Restored)
    assert restored.behind == 0
    assert restored.chunk > 0
    with undisturbed(VALUES) as expected:
        assert len(published(made)) == len(published(expected))


def test_memory_does_not_grow_with_the_lag() -> None:
    """A poll returns far more records than a chunk needs: they are used before the next one."""
    values = list(records(3000))
    made = broker()
    fill(made, values)
    process = SimulatedProcess(made, settings())
    process.until(lambda: len(process.of(events.ChunkCommitted)) == 199)
    assert max(event.waiting for event in process.of(events.RecordsRead)) < 500 + 15
