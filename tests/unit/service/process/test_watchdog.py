"""The watchdog ends a process whose loop stands still, but not one that stood still as a whole."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import pytest

from stream_fs.service.process.watchdog import Watchdog

LIMIT = 100.0


class Nights:
    """A clock, and the event that the watchdog waits for: each wait takes its timeout."""

    def __init__(self, waits: Sequence[float]) -> None:
        self.now = 0.0
        self._waits = list(waits)

    def wait(self, _: float) -> bool:
        if not self._waits:
            return True
        self.now += self._waits.pop(0)
        return False


def ended_after(waits: Sequence[float], monkeypatch: pytest.MonkeyPatch) -> float | None:
    """When the process was ended, whose loop never moves, while the watchdog woke up like this."""
    nights = Nights(waits)
    ends: list[float] = []
    watchdog = Watchdog(LIMIT, lambda: nights.now, lambda: ends.append(nights.now))
    monkeypatch.setattr(watchdog, "_stopped", nights)
    watchdog._watch()
    return ends[0] if ends else None


@pytest.mark.parametrize(
    ("waits", "end"),
    [
        pytest.param([1.0] * 99, None, id="in-time"),
        pytest.param([1.0] * 120, 101.0, id="hung"),
        pytest.param([1.0, 500.0, *[1.0] * 99], None, id="stopped"),
        pytest.param([1.0, 500.0, *[1.0] * 120], 602.0, id="stopped-and-hung"),
        pytest.param([20.0] * 6, 120.0, id="hung-on-a-busy-machine"),
    ],
)
def test_when_it_ends_the_process(
    waits: list[float], end: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert ended_after(waits, monkeypatch) == end


@pytest.mark.parametrize(
    ("waits", "end"),
    [
        pytest.param([1.0] * 99, None, id="in-time"),
        pytest.param([1.0] * 120, 101.0, id="hung"),
        pytest.param([1.0, 500.0, *[1.0] * 99], None, id="stopped"),
    ],
)
def test_a_call_that_hangs_aside_ends_the_process_though_the_loop_moves(
    waits: list[float], end: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    nights = Nights(waits)
    ends: list[float] = []
    watchdog = Watchdog(LIMIT, lambda: nights.now, lambda: ends.append(nights.now))

    class Moving(Nights):
        def wait(self, seconds: float) -> bool:
            watchdog.beat()
            return nights.wait(seconds)

    monkeypatch.setattr(watchdog, "_stopped", Moving([]))
    watchdog.watched(lambda: nights.wait(0.0))()  # one that has returned is forgotten
    watchdog.watched(watchdog._watch)()
    assert ends == ([] if end is None else [end + 1.0])


@pytest.mark.parametrize("in_thread", [True, False], ids=["thread", "loop"])
def test_each_part_of_a_call_has_the_whole_limit(in_thread: bool) -> None:
    """The calls of a transaction have a time limit each, and together take longer."""
    now = 0.0
    watchdog = Watchdog(LIMIT, lambda: now)
    silences: list[float] = []

    def parts() -> None:
        nonlocal now
        for _ in range(3):
            watchdog.progress()
            now += 0.9 * LIMIT
            if in_thread:
                loop = threading.Thread(target=watchdog.progress)
                loop.start()
                loop.join()
            silences.append(watchdog.seconds_since_progress)

    call = watchdog.watched(parts) if in_thread else parts
    call()
    assert silences == pytest.approx([0.9 * LIMIT] * 3)
