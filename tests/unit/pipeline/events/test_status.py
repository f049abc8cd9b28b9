"""Counts over a window of time, and histories of bounded length."""

from __future__ import annotations

import pytest

from stream_fs.pipeline.events.status import (
    MOST_POINTS,
    DeadLetterCount,
    SlidingCounter,
    append_point,
    thin_out,
)


def test_a_sliding_counter_forgets_what_is_older_than_its_window() -> None:
    empty = SlidingCounter(width=10.0, slots=3)
    one = empty.add(100.0, 2).add(109.0, 1).add(115.0, 5)
    assert one.counts == ((10, 3), (11, 5))
    assert [one.recent(now) for now in (115.0, 129.9, 130.0, 140.0)] == [8, 8, 5, 0]
    assert one.add(145.0, 1).counts == ((14, 1),)
    assert empty.counts == ()


def test_dead_letters_are_counted_in_total_and_for_an_hour() -> None:
    counts = DeadLetterCount().add(2, 0.0, (0, 10)).add(3, 3600.0, (10, 20))
    assert (counts.total, counts.recent.recent(3600.0)) == (5, 3)
    assert (counts.time, counts.offsets) == (3600.0, (10, 20))


@pytest.mark.parametrize("count", [1, MOST_POINTS, MOST_POINTS + 1, 5000])
def test_a_history_is_bounded_and_has_the_first_and_the_last_point(count: int) -> None:
    points: tuple[int, ...] = ()
    for point in range(count):
        points = append_point(points, point)
    assert len(points) <= MOST_POINTS
    assert (points[0], points[-1]) == (0, count - 1)
    newest = min(count, MOST_POINTS // 2)
    assert points[-newest:] == tuple(range(count - newest, count))


@pytest.mark.parametrize("most", [2, 3, 20, 100])
def test_a_thinned_history_keeps_its_ends(most: int) -> None:
    points = list(range(57))
    thin = thin_out(points, most)
    assert len(thin) == min(most, 57)
    assert (thin[0], thin[-1]) == (0, 56)
    assert list(thin) == sorted(set(thin))
