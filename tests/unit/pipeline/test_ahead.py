"""A chunk is folded while the transaction of the one before is under way: nobody can tell."""

from __future__ import annotations

import gc
import weakref
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest

from stream_fs.errors import AbortableError, FencedError, InvalidMessage, RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.model import update_chunk
from stream_fs.pipeline.partition import commit, intake
from stream_fs.pipeline.partition.commit import build_messages
from tests.support.memory_broker import Call
from tests.unit.pipeline.lives import (
    LETTERS,
    Life,
    broker,
    fill,
    published,
    records,
    settings,
    start,
    undisturbed,
)
from tests.unit.pipeline.test_recovery import STEPS, VALUES


class Later(Future[Any]):
    """A call that is made when somebody has asked so many times, or waits for it long."""

    def __init__(self, call: Callable[[], Any], asked: int) -> None:
        super().__init__()
        self._made = call
        self._left = asked

    def done(self) -> bool:
        self._left -= 1
        if self._left < 0:
            self._make()
        return super().done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if timeout is None or timeout > 1:  # seconds: an end in order
            self._make()
        return super().exception(0)

    def _make(self) -> None:
        if super().done():
            return
        try:
            self.set_result(self._made())
        except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
            self.set_exception(error)


def slow(call: Callable[[], Any]) -> Later:
    return Later(call, 6)


def stuck(call: Callable[[], Any]) -> Later:
    return Later(call, 1_000_000)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("survived", [0, 1, 2, 4])
def test_a_crash_at_any_step_changes_no_published_byte(step: str, survived: int) -> None:
    made = broker()
    fill(made, VALUES)
    first = Life(made, settings(), (step, survived), executor=slow)
    assert first.run() is (step == "snapshot sent" and survived > 3)
    assert Life(made, settings(), executor=slow).run()
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)
        assert published(made, LETTERS) == published(expected, LETTERS)


@pytest.mark.parametrize(
    ("call", "error", "after_effect"),
    [
        ("begin", RetriableError, False),
        ("send", AbortableError, True),
        ("commit", RetriableError, False),
        ("commit", RetriableError, True),
        ("commit", AbortableError, False),
    ],
)
def test_a_failed_call_is_made_good(
    call: Call, error: type[RetriableError | AbortableError], after_effect: bool
) -> None:
    made = broker()
    fill(made, VALUES)
    made.fail_next(call, error("now and then"), after_effect=after_effect)
    life = Life(made, settings(), executor=slow)
    assert life.run(600)
    assert len(life.of(events.TransactionFailed)) == 1
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)


def test_who_is_fenced_meanwhile_forgets_what_was_folded_ahead() -> None:
    made = broker()
    fill(made, VALUES)
    made.fail_next("commit", FencedError("somebody else"))
    life = Life(made, settings(), executor=slow)
    assert life.run(600)
    assert life.of(events.Fenced)
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)


def test_a_chunk_is_ranked_aside_and_once_however_often_it_is_sent(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ranked: list[int] = []
    calls: list[Callable[[], Any]] = []  # that are being made aside

    def noted(*given: Any) -> Any:
        assert calls, "the main thread has something better to do"
        ranked.append(given[3].state.chunk)
        return build_messages(*given)

    def executor(call: Callable[[], Any]) -> Later:
        def made() -> Any:
            calls.append(call)
            try:
                return call()
            finally:
                calls.remove(call)

        return slow(made)

    monkeypatch.setattr(commit, "build_messages", noted)
    made = broker()
    fill(made, VALUES)
    for _ in range(3):
        made.fail_next("send", AbortableError("now and then"))
    life = Life(made, settings(), executor=executor)
    assert life.run(600)
    assert len(life.of(events.TransactionFailed)) == 3
    assert ranked == list(range(1, 10))


def test_a_ranking_that_cannot_be_made_ends_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: Any) -> Any:
        raise InvalidMessage("a number is not finite")

    monkeypatch.setattr(commit, "build_messages", refused)
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(), executor=slow)
    with pytest.raises(InvalidMessage, match="not finite"):
        life.run()
    life.worker.stop()
    assert published(made) == []


def test_events_of_a_chunk_come_together() -> None:
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(), executor=slow)
    assert life.run()
    told = [e for e in life.events if isinstance(e, events.ChunkUpdated | events.ChunkCommitted)]
    chunks = [
        e.report.chunk if isinstance(e, events.ChunkUpdated) else e.ranking.chunk for e in told
    ]
    assert chunks == [chunk for chunk in range(1, 10) for _ in range(2)]
    assert all(event.seconds is not None and event.seconds > 0 for event in told)


@pytest.fixture
def folds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The first offsets of the chunks that were folded."""
    found: list[int] = []

    def noted(*given: Any) -> Any:
        found.append(given[1].from_offset)
        return update_chunk(*given)

    monkeypatch.setattr(intake, "update_chunk", noted)
    return found


def test_one_chunk_is_folded_ahead_and_no_more_is_read(folds: list[int]) -> None:
    made = broker()
    fill(made, list(records(3000)))
    life = Life(made, settings(), executor=stuck)
    life.until(lambda: bool(life.of(events.RecordsRead)))
    assert life.run(100)
    assert folds == [0, 20]
    assert len(life.of(events.RecordsRead)) == 1
    assert published(made) == []


def test_the_rows_of_a_chunk_go_when_it_is_folded(monkeypatch: pytest.MonkeyPatch) -> None:
    rows: list[weakref.ref[Any]] = []

    def noted(*given: Any) -> Any:
        rows.extend(weakref.ref(view.rows) for view in given[1].chunk.views.values())
        return update_chunk(*given)

    monkeypatch.setattr(intake, "update_chunk", noted)
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings(), executor=stuck)
    life.until(lambda: len(rows) > 2)
    gc.collect()
    assert all(one() is None for one in rows), "its transaction is still under way"


def test_an_orderly_end_leaves_the_start_to_the_next_owner(folds: list[int]) -> None:
    made = broker()
    fill(made, VALUES)
    first = Life(made, settings(), executor=stuck)
    first.until(lambda: len(folds) == 2)
    first.worker.stop()
    assert published(made) == []
    assert Life(made, settings()).run()
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)


def test_other_partitions_go_on_while_a_start_is_under_way(folds: list[int]) -> None:
    """The chunk behind the first one is folded then, and waits; nothing more is read."""
    made = broker(2)
    fill(made, list(records(3000)))
    life = Life(made, settings(), executor=stuck)
    life.until(lambda: len(folds) == 2)
    assert life.run(20)
    fill(made, VALUES, 1)
    before = len(life.of(events.RecordsRead))
    assert life.run(20)
    read = life.of(events.RecordsRead)[before:]
    assert {of.partition.number for of in read} == {1}


def test_an_orderly_end_waits_for_what_is_under_way(folds: list[int]) -> None:
    made = broker()
    fill(made, VALUES)
    start(made, settings())
    first = Life(made, settings(), executor=stuck)
    first.until(lambda: len(folds) == 2)
    first.worker.stop()
    assert len(published(made)) == 1
    second = Life(made, settings())
    assert second.run()
    (restored,) = second.of(events.Restored)
    assert (restored.chunk, restored.behind) == (1, 0)
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)
