"""Seconds, ratios and bytes on a machine that others use too.

Contestants take turns, so that a slow moment hits all of them, and ratios are taken within a turn.
Seconds are those that the processor spent: all work is done by one thread, so a clock on the wall
would show the same if nobody else were there.
"""

from __future__ import annotations

import time
import tracemalloc
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

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
    """Two contestants' seconds, turn by turn; the ratio is `over`/`under`."""

    section: str
    label: str
    shape: str
    over_name: str
    under_name: str
    over: Seconds
    under: Seconds
    goal: Goal | None = None

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """Lower quartile, median and upper quartile of the ratios within turns."""
        ratios = np.array(self.over) / np.array(self.under)
        lower, middle, upper = np.quantile(ratios, [0.25, 0.5, 0.75])
        return float(lower), float(middle), float(upper)


def take_turns(runs: Mapping[str, Run], turns: int) -> dict[str, Seconds]:
    """Seconds of every run in every turn; who begins goes round."""
    seconds: dict[str, list[float]] = {name: [] for name in runs}
    names = list(runs)
    for turn in range(turns):
        first = turn % len(names)
        for name in names[first:] + names[:first]:
            start = time.process_time()
            runs[name]()
            seconds[name].append(time.process_time() - start)
    return {name: tuple(taken) for name, taken in seconds.items()}


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
