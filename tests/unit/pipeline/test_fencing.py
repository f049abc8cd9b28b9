"""Consecutive fencings by another process end this one; fencings in an outage do not."""

from __future__ import annotations

import pytest

from stream_fs.errors import FencedError, NoOwnership
from stream_fs.pipeline import events
from stream_fs.pipeline.fencing import MAX_FENCINGS, QUIET_SECONDS, FencingCounter
from tests.support.simulated_process import (
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
    undisturbed,
)

VALUES = list(records(250))


@pytest.mark.parametrize("outcome_unknown", [False, True])
def test_consecutive_fencings_by_another_process_are_final(outcome_unknown: bool) -> None:
    made = broker()
    fill(made, VALUES)
    for _ in range(2 * MAX_FENCINGS):
        made.fail_next("begin", FencedError("again", outcome_unknown=outcome_unknown))
    process = SimulatedProcess(made, settings())
    if outcome_unknown:
        process.until(lambda: len(process.of(events.ChunkCommitted)) == 16, turns=20_000)
        assert len(process.of(events.Fenced)) == 2 * MAX_FENCINGS
        with undisturbed(VALUES) as expected:
            assert published(made) == published(expected)
        return
    with pytest.raises(NoOwnership):
        process.until(lambda: False, turns=10_000)


def test_a_quiet_minute_resets_the_count() -> None:
    counter = FencingCounter("in/0", lambda: 1.0)
    for number in range(3 * MAX_FENCINGS):
        assert counter.note(number * (QUIET_SECONDS + 1), FencedError("again")) is None


def test_the_delay_doubles_and_ends_once() -> None:
    counter = FencingCounter("in/0", lambda: 1.0)
    for delay in (2.0, 4.0, 8.0):
        assert not counter.waiting
        assert counter.note(10.0, FencedError("again")) is None
        assert counter.waiting
        assert not counter.retry_due(9.9 + delay)
        assert counter.retry_due(10.0 + delay)
        assert not counter.retry_due(10.0 + delay)
