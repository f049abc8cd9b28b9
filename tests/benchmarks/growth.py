"""How time and memory of one update grow with each size, the others held."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from stream_fs.selector import update
from tests.benchmarks.measure import Goal, Run, peak_bytes, slope, take_turns
from tests.benchmarks.workload import Shape, warm_model

LINEAR = Goal("≤", 1.1)
"""Exponent that counts as linear: a fit to measured times is not exact."""
WARM_UP = 2
"""Chunks before the measured one: there are many models to warm up."""


@dataclass(frozen=True)
class Sweep:
    """Values of one size, what is `held` meanwhile, and the count that growth is measured in."""

    name: str
    unit: str
    held: str
    values: Sequence[float]
    shape: Callable[[float], Shape]
    count: Callable[[float], float]
    goal: Goal | None = None


@dataclass(frozen=True)
class Point:
    """One size: median seconds of a chunk over the turns, and bytes beyond what was there before.

    `rate` are records in a second by the clock, where a whole service is measured.
    """

    value: float
    count: float
    seconds: float
    bytes: int
    rate: float = 0.0


@dataclass(frozen=True)
class Growth:
    """A measured sweep."""

    name: str
    unit: str
    held: str
    points: tuple[Point, ...]
    goal: Goal | None

    @property
    def time_slope(self) -> float:
        return slope([p.count for p in self.points], [p.seconds for p in self.points])

    @property
    def memory_slope(self) -> float:
        return slope([p.count for p in self.points], [p.bytes for p in self.points])


def sweeps(base: Shape, scale: float, length: int) -> list[Sweep]:
    """All sizes, around `base`; `scale` shrinks the ranges, `length` thins them out."""

    def size(value: float) -> int:
        return max(round(value * scale), 8)

    def spread(*values: float) -> list[float]:
        places = np.linspace(0, len(values) - 1, min(length, len(values))).round().astype(int)
        return [values[place] for place in places]

    pair = f"d {base.views} × {base.dimension}"
    complete = replace(base, missing=0.0)
    five = replace(base, views=5)
    wide = replace(base, dimension=size(20_000))
    return [
        Sweep(
            "N, rows of a chunk",
            "row",
            f"{pair}, K {base.clusters}",
            [size(n) for n in spread(250, 500, 1000, 2000)],
            lambda n: replace(base, rows=int(n)),
            lambda n: n,
        ),
        Sweep(
            "d, features of a view",
            "feature",
            f"N {base.rows}, {base.views} views, K {base.clusters}",
            [size(d) for d in spread(500, 1000, 2500, 5000, 10_000, 20_000)],
            lambda d: replace(base, dimension=int(d)),
            lambda d: d * base.views,
            LINEAR,
        ),
        Sweep(
            "K, clusters",
            "cluster",
            f"N {base.rows}, {pair}",
            spread(5, 10, 20, 40),
            lambda k: replace(base, clusters=int(k)),
            lambda k: k,
        ),
        Sweep(
            "views, the same d in all together",
            "view",
            f"N {base.rows}, {8 * base.dimension} features, K {base.clusters}, none missing",
            spread(1, 2, 4, 8),
            lambda v: replace(complete, views=int(v), dimension=8 * base.dimension // int(v)),
            lambda v: v,
        ),
        Sweep(
            "views, the same d in each",
            "view",
            f"N {base.rows}, d {base.dimension}, K {base.clusters}, none missing",
            spread(1, 2, 4, 8),
            lambda v: replace(complete, views=int(v)),
            lambda v: v,
            LINEAR,
        ),
        Sweep(
            "missing share",
            "present row",
            str(five),
            spread(0.0, 0.2, 0.4, 0.6, 0.8),
            lambda m: replace(five, missing=m),
            lambda m: (1 - m) * five.rows * five.views,
        ),
        Sweep(
            "density, CSR",
            "non-zero",
            str(wide),
            spread(0.001, 0.003, 0.01, 0.03, 0.1),
            lambda q: replace(wide, density=q),
            lambda q: q * wide.rows * wide.dimension * wide.views * (1 - wide.missing),
            LINEAR,
        ),
    ]


def measure_growth(sweep: Sweep, turns: int, iterations: int) -> Growth:
    """Time and memory at every value; all updates make the same number of iterations."""
    fixed = {"min_iterations": iterations, "max_iterations": iterations}
    runs: dict[str, Run] = {}
    for value in sweep.values:
        state, chunk = warm_model(sweep.shape(value), WARM_UP, **fixed)
        runs[f"{value:g}"] = partial(update, state, chunk)
    seconds = take_turns(runs, turns)
    points = tuple(
        Point(
            value,
            sweep.count(value),
            float(np.median(seconds[f"{value:g}"])),
            peak_bytes(runs[f"{value:g}"]),
        )
        for value in sweep.values
    )
    return Growth(sweep.name, sweep.unit, sweep.held, points, sweep.goal)
