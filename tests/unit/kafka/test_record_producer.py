"""The rate limit of a producer, with a fake clock."""

from __future__ import annotations

import pytest

from stream_fs.kafka import RateLimit


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def run(limit: RateLimit, clock: Clock, count: int, cost: float) -> None:
    """Send `count` records that take `cost` seconds each."""
    for _ in range(count):
        while (seconds := limit.wait()) > 0:
            clock.now += min(seconds, 0.1)
        clock.now += cost
        limit.record_sent()


@pytest.mark.parametrize("cost", [0.0, 0.003])
def test_the_rate_holds_on_average(cost: float) -> None:
    clock = Clock()
    run(RateLimit(200, clock), clock, 1000, cost)
    assert 1000 / (clock.now - 50) == pytest.approx(200, rel=0.01)


def test_a_producer_that_falls_behind_catches_up() -> None:
    clock = Clock()
    limit = RateLimit(100, clock)
    run(limit, clock, 100, 0)
    clock.now += 1.5  # nothing was sent for a while
    run(limit, clock, 300, 0.001)
    assert 400 / (clock.now - 50) == pytest.approx(100, rel=0.01)


def test_without_a_rate_there_is_no_wait() -> None:
    clock = Clock()
    run(RateLimit(None, clock), clock, 1000, 0)
    assert clock.now == 50
