"""Whether the chosen set stays: from chunk to chunk, between halves of the data, in other units.

Overlap is the share of the chosen features that two choices have in common (|A ∩ B| / |A|), 20 %
of the features being chosen with the method's own budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from stream_fs.evaluate.datasets import IncompleteViews, Labels, Mask
from stream_fs.evaluate.experiments.speed import first_rows
from stream_fs.evaluate.methods.registry import ALL, METHODS, Method, advised, select
from stream_fs.evaluate.plan import Entry, OnData, Options, Row, Settings
from stream_fs.evaluate.protocol import Problem, chunks

SHARE = 0.2
REPETITIONS = 2
LAST_CHUNKS = 3


def plan(options: Options, entry: Entry) -> list[Settings]:
    """A task per repetition and method; large data sets are left out."""
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "method": method.name,
            "identity": method.identity,
        }
        for repetition in range(1 if options.quick else options.repetitions_of(entry, REPETITIONS))
        for method in METHODS.values()
        if method.name != ALL
    ]


def measure(problem: Problem, _labels: Labels, settings: Settings) -> list[Row]:
    """Overlaps of choices that should be the same."""
    method = METHODS[str(settings["method"])]
    whole = choose(method, problem)
    ends = [rows.stop for rows in chunks(problem.instances, problem.clusters)][-LAST_CHUNKS:]
    steps = [choose(method, first_rows(problem, stop)) for stop in ends[:-1]] + [whole]
    neighbours = [overlap(a, b) for a, b in pairwise(steps)]
    moved = other_units(problem)
    halves = [choose(method, half) for half in split(problem)]
    return [
        {
            "chunks": float(np.mean(neighbours)) if neighbours else float("nan"),
            "halves": overlap(halves[0], halves[1]),
            "units": overlap(whole, choose(method, moved)) if moved else float("nan"),
        }
    ]


def choose(method: Method, problem: Problem) -> list[Mask]:
    """The first draw's choice of a share of the features."""
    return select(method.rank(problem)[0], SHARE, method.own_budget)


def overlap(one: Sequence[Mask], other: Sequence[Mask]) -> float:
    """Share of the chosen features that both choices have, over all views."""
    a, b = np.concatenate(one), np.concatenate(other)
    return float((a & b).sum() / max(a.sum(), 1))


def split(problem: Problem) -> list[Problem]:
    """Even and odd rows, each a problem of its own with its own seed."""
    data = problem.data
    return [
        replace(
            problem,
            seed=problem.seed + start,
            data=IncompleteViews(tuple(x[start::2] for x in data.views), data.present[start::2]),
        )
        for start in (0, 1)
    ]


def other_units(problem: Problem) -> Problem | None:
    """Every feature measured in another unit: times 10^u, u between −3 and 3.

    Counts have no other unit and stay as they are; None where there is nothing else.
    """
    data = problem.data
    generator = np.random.default_rng(problem.seed)
    views = []
    for v, x in enumerate(data.views):
        units = 10.0 ** generator.uniform(-3, 3, x.shape[1])
        views.append(x if advised(data, v) == "unit" else x * units.astype(x.dtype))
    if all(moved is x for moved, x in zip(views, data.views, strict=True)):
        return None
    return replace(problem, data=IncompleteViews(tuple(views), data.present))


EXPERIMENT = OnData("stability", plan, measure, revision=3, large=False)
