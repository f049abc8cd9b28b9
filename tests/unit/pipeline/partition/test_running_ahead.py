"""A chunk is updated while the one before is committed, without any effect on what is published."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from typing import Any

import pytest

from stream_fs.errors import AbortableError, FencedError, InvalidMessage
from stream_fs.pipeline import events
from stream_fs.pipeline.model import update_chunk
from stream_fs.pipeline.partition import commit, intake
from stream_fs.pipeline.partition.commit import build_messages
from tests.support.executors import DelayedFuture, never_run, run_slowly
from tests.support.simulated_process import (
    VALUES,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
    start,
    undisturbed,
)


def test_a_fenced_task_discards_the_chunks_that_it_updated_ahead() -> None:
    made = broker()
    fill(made, VALUES)
    made.fail_next("commit", FencedError("another process"))
    process = SimulatedProcess(made, settings(), executor=run_slowly)
    assert process.run(600)
    assert process.of(events.Fenced)
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)


def test_the_executor_ranks_a_chunk_once_however_often_it_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranked: list[int] = []
    running: list[Callable[[], Any]] = []  # jobs of the executor

    def noted(*given: Any) -> Any:
        assert running, "the main thread should update the next chunk"
        ranked.append(given[3].state.chunk)
        return build_messages(*given)

    def executor(job: Callable[[], Any]) -> DelayedFuture:
        def run() -> Any:
            running.append(job)
            try:
                return job()
            finally:
                running.remove(job)

        return run_slowly(run)

    monkeypatch.setattr(commit, "build_messages", noted)
    made = broker()
    fill(made, VALUES)
    for _ in range(3):
        made.fail_next("send", AbortableError("now and then"))
    process = SimulatedProcess(made, settings(), executor=executor)
    assert process.run(600)
    assert len(process.of(events.TransactionFailed)) == 3
    assert ranked == list(range(1, 10))


def test_a_ranking_that_fails_ends_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise InvalidMessage("a number is not finite")

    monkeypatch.setattr(commit, "build_messages", refused)
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(), executor=run_slowly)
    with pytest.raises(InvalidMessage, match="not finite"):
        process.run()
    process.worker.stop()
    assert published(made) == []


def test_events_of_a_chunk_are_observed_together() -> None:
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(), executor=run_slowly)
    assert process.run()
    found = [
        e for e in process.events if isinstance(e, events.ChunkUpdated | events.ChunkCommitted)
    ]
    chunks = [
        e.report.chunk if isinstance(e, events.ChunkUpdated) else e.ranking.chunk for e in found
    ]
    assert chunks == [chunk for chunk in range(1, 10) for _ in range(2)]
    assert all(event.seconds is not None and event.seconds > 0 for event in found)


@pytest.fixture
def updates(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first offsets of the updated chunks."""
    found: list[int] = []

    def noted(*given: Any) -> Any:
        found.append(given[1].from_offset)
        return update_chunk(*given)

    monkeypatch.setattr(intake, "update_chunk", noted)
    return found


def test_one_chunk_is_updated_ahead_and_no_more_is_read(updates: list[int]) -> None:
    made = broker()
    fill(made, list(records(3000)))
    process = SimulatedProcess(made, settings(), executor=never_run)
    process.until(lambda: bool(process.of(events.RecordsRead)))
    assert process.run(100)
    assert updates == [0, 20]
    assert len(process.of(events.RecordsRead)) == 1
    assert published(made) == []


def test_the_rows_of_a_chunk_are_freed_after_its_update(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[weakref.ref[Any]] = []

    def noted(*given: Any) -> Any:
        rows.extend(weakref.ref(view.rows) for view in given[1].chunk.views.values())
        return update_chunk(*given)

    monkeypatch.setattr(intake, "update_chunk", noted)
    made = broker()
    fill(made, VALUES)
    process = SimulatedProcess(made, settings(), executor=never_run)
    process.until(lambda: len(rows) > 2)
    gc.collect()
    assert all(one() is None for one in rows), "its transaction is still in flight"


def test_a_graceful_shutdown_leaves_the_start_to_the_next_owner(updates: list[int]) -> None:
    made = broker()
    fill(made, VALUES)
    first = SimulatedProcess(made, settings(), executor=never_run)
    first.until(lambda: len(updates) == 2)
    first.worker.stop()
    assert published(made) == []
    assert SimulatedProcess(made, settings()).run()
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)


def test_other_partitions_continue_while_a_start_is_recorded(updates: list[int]) -> None:
    """The chunk behind the first one is updated then, and waits; nothing more is read."""
    made = broker(2)
    fill(made, list(records(3000)))
    process = SimulatedProcess(made, settings(), executor=never_run)
    process.until(lambda: len(updates) == 2)
    assert process.run(20)
    fill(made, VALUES, 1)
    before = len(process.of(events.RecordsRead))
    assert process.run(20)
    read = process.of(events.RecordsRead)[before:]
    assert {of.partition.number for of in read} == {1}


def test_a_graceful_shutdown_waits_for_the_commit_in_flight(updates: list[int]) -> None:
    made = broker()
    fill(made, VALUES)
    start(made, settings())
    first = SimulatedProcess(made, settings(), executor=never_run)
    first.until(lambda: len(updates) == 2)
    first.worker.stop()
    assert len(published(made)) == 1
    second = SimulatedProcess(made, settings())
    assert second.run()
    (restored,) = second.of(events.Restored)
    assert (restored.chunk, restored.behind) == (1, 0)
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)
