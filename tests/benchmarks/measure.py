"""Seconds, ratios and bytes on a machine that others use too.

Programs take turns, so that a slow moment hits all of them, and ratios are taken within a turn.
Seconds are those that the processor spent: all work is done by one thread, so a clock on the wall
would show the same on an idle machine.
"""

from __future__ import annotations

import math
import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Run = Callable[[], object]
Seconds = tuple[float, ...]


@dataclass(frozen=True)
class Goal:
    """A bound on a median."""

    relation: Literal["≤", "<", "≥"]
    bound: float

    def __str__(self) -> str:
        return f"{self.relation} {self.bound:g}"

    def met(self, value: float) -> bool:
        match self.relation:
            case "≤":
                return value <= self.bound
            case "<":
                return value < self.bound
            case "≥":
                return value >= self.bound


@dataclass(frozen=True)
class Comparison:
    """The seconds of two programs, turn by turn; the ratio is `over`/`under`."""

    section: str
    label: str
    shape: str
    over_name: str
    under_name: str
    over: Seconds
    under: Seconds
    goal: Goal | None = None
    records: float = 0
    """Records that each processed, where a rate says more than seconds."""

    @property
    def ratios(self) -> NDArray[np.float64]:
        """Turn by turn."""
        ratios: NDArray[np.float64] = np.array(self.over) / np.array(self.under)
        return ratios

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile of the ratios within turns."""
        lower, middle, upper = np.quantile(self.ratios, [0.25, 0.5, 0.75])
        return float(lower), float(middle), float(upper)

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true median is, with a confidence of 95 %; see `median_interval`."""
        return median_interval(self.ratios.tolist())


def take_turns(runs: Mapping[str, Run], turns: int) -> dict[str, Seconds]:
    """Seconds of every run in every turn; the first one rotates."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            start = time.process_time()
            runs[name]()
            seconds[name].append(time.process_time() - start)
    return {name: tuple(taken) for name, taken in seconds.items()}


def take_timed_turns(
    runs: Mapping[str, Callable[[], float]], turns: int, *, warm_up: bool = True
) -> dict[str, Seconds]:
    """As `take_turns`, of runs that say themselves how many seconds by the clock they took.

    For work that several threads or processes share, the broker among them: processor time would
    show a part of it, and setting it up is not what is measured. Without meaning is the turn that
    warms everything up.
    """
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(-1 if warm_up else 0, turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            taken = runs[name]()
            if turn >= 0:
                seconds[name].append(taken)
    return {name: tuple(taken) for name, taken in seconds.items()}


def median_interval(values: Sequence[float], confidence: float = 0.95) -> tuple[float, float]:
    """The narrowest pair of order statistics that holds the median so surely, without assumptions.

    Of fewer than six values even the whole range does not, and is all that can be said.
    """
    ordered = sorted(values)
    outside = 0.0
    for depth in range(len(ordered) // 2):
        outside += 2 * math.comb(len(ordered), depth) / 2 ** len(ordered)
        if outside > 1 - confidence:
            depth = max(depth - 1, 0)
            break
    else:
        depth = max((len(ordered) - 1) // 2, 0)
    return ordered[depth], ordered[-1 - depth]


def peak_bytes(run: Run) -> int:
    """The most memory that a run holds beyond what was there before, its result included."""
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        run()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


def slope(sizes: Sequence[float], values: Sequence[float]) -> float:
    """Exponent of the power law through the points: 1 is linear."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])
