"""Wherever a process dies, what is published in the end is what an undisturbed one publishes."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import pytest

from stream_fs.checkpoint import decode_progress, encode_progress
from stream_fs.errors import AbortableError, RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.wire import RankingFormat, decode_ranking, digest, encode_ranking
from tests.support.memory_broker import Call
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
    undisturbed,
)

STEPS = ["updated", "begun", "snapshot sent", "records sent", "committed", "advised"]
VALUES = list(records(150, bad_every=11))


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
def test_a_crash_at_any_step_changes_no_published_byte(step: str, survived: int) -> None:
    made = broker()
    fill(made, VALUES)
    first = Life(made, settings(), (step, survived))
    assert first.run() is (step == "snapshot sent" and survived > 3)
    assert Life(made, settings()).run()
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)
        assert published(made, LETTERS) == published(expected, LETTERS)


@pytest.mark.parametrize("step", STEPS)
@pytest.mark.parametrize("survived", [0, 1, 2, 4, 6])
def test_an_error_at_any_step_after_which_it_ends_in_order_changes_no_published_byte(
    step: str, survived: int
) -> None:
    """Want of memory, say: a commit may be done and not noted, and the end must not undo it."""
    made = broker()
    fill(made, VALUES)
    first = Life(made, settings(), (step, survived))
    with suppress(Crash):
        for _ in range(300):
            first.worker.run_once()
    first.worker.stop()
    assert Life(made, settings()).run()
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)
        assert published(made, LETTERS) == published(expected, LETTERS)


def test_many_crashes_in_a_row_change_no_published_byte() -> None:
    made = broker()
    fill(made, VALUES)
    deaths = 0
    for number in range(40):
        if not Life(made, settings(), (STEPS[number % len(STEPS)], 0)).run(60):
            deaths += 1
    assert Life(made, settings()).run()
    assert deaths > 15
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)
        assert published(made, LETTERS) == published(expected, LETTERS)


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
def test_a_failed_call_is_made_good(
    call: Call, error: type[RetriableError | AbortableError], after_effect: bool
) -> None:
    made = broker()
    fill(made, VALUES)
    if call == "abort":
        made.fail_next("send", AbortableError("first"))
    made.fail_next(call, error("now and then"), after_effect=after_effect)
    life = Life(made, settings())
    assert life.run(600)
    assert life.of(events.TransactionFailed)
    with undisturbed(VALUES) as expected:
        assert published(made) == published(expected)


def test_what_was_not_committed_is_computed_again_and_compared() -> None:
    made = broker()
    fill(made, VALUES)
    assert not Life(made, settings(), ("updated", 5)).run()
    second = Life(made, settings())
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
    assert not Life(made, here, ("updated", 5)).run()
    value = published(made)[-1][1]
    key = here.keys(Partition(TOPIC, 0)).progress
    (*_, last) = [message for message in made.committed(STATE) if message.key == key]
    progress = decode_progress(last.value or b"")
    assert progress.digest == digest(value)
    earlier_digest = digest(earlier(value, format))
    assert earlier_digest != progress.digest
    made.produce(STATE, encode_progress(replace(progress, digest=earlier_digest)), key=key)
    second = Life(made, here)
    assert second.run()
    assert second.of(events.Restored)[0].behind == 1
    assert len(second.of(events.ReplayDiverged)) == diverged


def test_an_orderly_end_leaves_nothing_to_replay() -> None:
    made = broker()
    fill(made, VALUES[:100])
    first = Life(made, settings())
    assert first.run()
    first.worker.stop()
    assert first.of(events.SnapshotCommitted)
    fill(made, VALUES[100:])
    second = Life(made, settings())
    assert second.run()
    (restored,) = second.of(events.Restored)
    assert restored.behind == 0
    assert restored.chunk > 0
    with undisturbed(VALUES) as expected:
        assert len(published(made)) == len(published(expected))


def test_memory_does_not_grow_with_the_lag() -> None:
    """A poll brings far more records than a chunk has: they are used up before the next."""
    values = list(records(3000))
    made = broker()
    fill(made, values)
    life = Life(made, settings())
    life.until(lambda: len(life.of(events.ChunkCommitted)) == 199)
    assert max(event.waiting for event in life.of(events.RecordsRead)) < 500 + 15
