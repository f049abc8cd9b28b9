"""The pace of a producer, by a clock of the test's own."""

from __future__ import annotations

import pytest

from stream_fs.kafka import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def run(pace: RateLimit, clock: Clock, count: int, cost: float) -> None:
    """Send so many records, each of which takes so long, and wait as the pace says."""
    for _ in range(count):
        while (seconds := pace.wait()) > 0:
            clock.now += min(seconds, 0.1)
        clock.now += cost
        pace.went()


@pytest.mark.parametrize("cost", [0.0, 0.003])
def test_the_rate_holds_on_average(cost: float) -> None:
    clock = Clock()
    run(RateLimit(200, clock), clock, 1000, cost)
    assert 1000 / (clock.now - 50) == pytest.approx(200, rel=0.01)


def test_who_falls_behind_catches_up() -> None:
    clock = Clock()
    pace = RateLimit(100, clock)
    run(pace, clock, 100, 0)
    clock.now += 1.5  # nothing went for a while
    run(pace, clock, 300, 0.001)
    assert 400 / (clock.now - 50) == pytest.approx(100, rel=0.01)


def test_without_a_rate_nobody_waits() -> None:
    clock = Clock()
    run(RateLimit(None, clock), clock, 1000, 0)
    assert clock.now == 50
