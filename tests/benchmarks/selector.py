"""Time and memory of the selector: `python -m tests.benchmarks.selector [--quick] [--json FILE]`.

One update of the default preset at a later chunk, single precision, with BLAS on one thread.
Programs take turns within this one run; ratios are medians of the turns' ratios. d is the
number of features in each view.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

from threadpoolctl import threadpool_limits

from stream_fs.service.process.memory import keep_freed_memory
from tests.benchmarks.comparisons import (
    Case,
    against_kernels,
    against_reference,
    against_scratch,
    ranking,
)
from tests.benchmarks.growth import Growth, measure_growth, sweeps
from tests.benchmarks.machine import machine
from tests.benchmarks.measure import Comparison, Goal
from tests.benchmarks.workload import Shape
from tests.support.markdown_table import render

TEN_TIMES = Goal("≥", 10)


@dataclass(frozen=True)
class Plan:
    """What a run measures; `recomputing` pairs a case with its chunk."""

    kernels: Sequence[Case]
    reference: Sequence[Case]
    recomputing: Sequence[tuple[Case, int]]
    ranking: Sequence[Case]
    growth_base: Shape
    growth_scale: float
    growth_length: int
    growth_turns: int
    growth_iterations: int


FULL = Plan(
    kernels=[
        Case(Shape(5000), 7, Goal("≤", 1.5)),
        Case(Shape(300), 31, Goal("≤", 3)),
    ],
    reference=[Case(Shape(300), 3)],
    recomputing=[
        (Case(Shape(300), 3, TEN_TIMES), 10),
        (Case(Shape(300), 2, TEN_TIMES), 20),
        (Case(Shape(5000), 2, TEN_TIMES), 10),
    ],
    ranking=[Case(Shape(5000), 5, Goal("<", 1)), Case(Shape(20_000), 3, Goal("<", 1))],
    growth_base=Shape(1000),
    growth_scale=1.0,
    growth_length=6,
    growth_turns=3,
    growth_iterations=20,
)

QUICK = Plan(
    kernels=[
        Case(Shape(5000), 3, Goal("≤", 1.5)),
        Case(Shape(300), 7, Goal("≤", 3)),
    ],
    reference=[Case(Shape(300, rows=200), 1)],
    recomputing=[(Case(Shape(300), 1, TEN_TIMES), 10)],
    ranking=[Case(Shape(5000), 2, Goal("<", 1))],
    growth_base=Shape(500),
    growth_scale=0.4,
    growth_length=3,
    growth_turns=2,
    growth_iterations=10,
)


@dataclass(frozen=True)
class Figures:
    """All that was measured, and where."""

    machine: dict[str, str]
    comparisons: list[Comparison]
    growths: list[Growth]

    def to_dict(self) -> dict[str, Any]:
        comparisons = [
            {
                **asdict(c),
                "ratio": dict(zip(("lower", "median", "upper"), c.quartiles, strict=True)),
            }
            for c in self.comparisons
        ]
        growths = [
            {**asdict(g), "time_slope": g.time_slope, "memory_slope": g.memory_slope}
            for g in self.growths
        ]
        return {"machine": self.machine, "comparisons": comparisons, "growth": growths}


def measure(plan: Plan) -> Figures:
    keep_freed_memory()  # as the service does; the rivals have it, too
    with threadpool_limits(limits=1):
        comparisons = list(compare(plan))
        growths = [
            measure_growth(sweep, plan.growth_turns, plan.growth_iterations)
            for sweep in sweeps(plan.growth_base, plan.growth_scale, plan.growth_length)
        ]
    where = {**machine(), "scikit-learn": version("scikit-learn")}
    return Figures(where, comparisons, growths)


def compare(plan: Plan) -> Iterator[Comparison]:
    for case in plan.kernels:
        yield from against_kernels(case)
    for case in plan.reference:
        yield from against_reference(case)
    for case, chunks in plan.recomputing:
        yield from against_scratch(case, chunks)
    for case in plan.ranking:
        yield from ranking(case)


def report(figures: Figures) -> str:
    header = ["# Selector: time and memory", ""]
    header += [f"- {name}: {value}" for name, value in figures.machine.items()]
    header += [
        "- default preset, float32, every view missing from half of the rows unless said otherwise",
        "- d counts the features of each view",
        "- seconds are processor time of one thread; chunks are read already",
        "- ratio: median of numerator/denominator over the turns; growth at a fixed number of "
        "iterations",
    ]
    return render(header, figures.comparisons, figures.growths)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.selector")
    parser.add_argument("--quick", action="store_true", help="fewer turns and sizes: half a minute")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all figures to a file")
    options = parser.parse_args()
    start = time.perf_counter()
    figures = measure(QUICK if options.quick else FULL)
    print(report(figures))
    print(f"\n{time.perf_counter() - start:.0f} s", file=sys.stderr)
    if options.json:
        text = json.dumps(figures.to_dict(), indent=1, ensure_ascii=False)
        options.json.write_text(text + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
