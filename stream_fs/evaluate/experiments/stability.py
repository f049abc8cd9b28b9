"""Stability of the selection: between chunks, between halves of the data, in other units.

The overlap of two selections is |A ∩ B| / |A|; 20 % of the features are selected with the method's
own budget.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from stream_fs.evaluate.datasets import IncompleteViews, Labels, Mask
from stream_fs.evaluate.methods.registry import (
    ALL_FEATURES,
    METHODS,
    Method,
    advised_transform,
    select,
)
from stream_fs.evaluate.plan import DataSetEntry, DataSetExperiment, Options, Row, Settings
from stream_fs.evaluate.protocol import Trial, chunks

SHARE = 0.2
REPETITIONS = 2
LAST_CHUNKS = 3


def plan(options: Options, entry: DataSetEntry) -> list[Settings]:
    """One per repetition and method."""
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "method": method.name,
            "identity": method.identity,
        }
        for repetition in range(options.repetitions_on(entry, REPETITIONS))
        for method in METHODS.values()
        if method.name != ALL_FEATURES
    ]


def measure(trial: Trial, _labels: Labels, settings: Settings) -> list[Row]:
    """Overlaps of selections that should be equal."""
    method = METHODS[str(settings["method"])]
    whole = select_share(method, trial)
    ends = [rows.stop for rows in chunks(trial.instances, trial.clusters)][-LAST_CHUNKS:]
    steps = [select_share(method, trial.first_rows(stop)) for stop in ends[:-1]] + [whole]
    neighbours = [overlap(a, b) for a, b in pairwise(steps)]
    rescaled = in_other_units(trial)
    halves = [select_share(method, half) for half in split(trial)]
    return [
        {
            "chunks": float(np.mean(neighbours)) if neighbours else float("nan"),
            "halves": overlap(halves[0], halves[1]),
            "units": overlap(whole, select_share(method, rescaled)) if rescaled else float("nan"),
        }
    ]


def select_share(method: Method, trial: Trial) -> list[Mask]:
    """The selection of the first draw."""
    return select(method.rank(trial)[0], SHARE, method.own_budget)


def overlap(one: Sequence[Mask], other: Sequence[Mask]) -> float:
    """Share of the selected features that are in both selections, over all views."""
    a, b = np.concatenate(one), np.concatenate(other)
    return float((a & b).sum() / max(a.sum(), 1))


def split(trial: Trial) -> list[Trial]:
    """Even and odd rows, each a trial with its own seed."""
    data = trial.data
    return [
        replace(
            trial,
            seed=trial.seed + start,
            data=IncompleteViews(tuple(x[start::2] for x in data.views), data.present[start::2]),
        )
        for start in (0, 1)
    ]


def in_other_units(trial: Trial) -> Trial | None:
    """Every feature multiplied by 10^u, u between −3 and 3; None if all views are counts.

    Counts have no other unit and do not change.
    """
    data = trial.data
    generator = np.random.default_rng(trial.seed)
    views = []
    for v, x in enumerate(data.views):
        units = 10.0 ** generator.uniform(-3, 3, x.shape[1])
        views.append(x if advised_transform(data, v) == "unit" else x * units.astype(x.dtype))
    if all(rescaled is x for rescaled, x in zip(views, data.views, strict=True)):
        return None
    return replace(trial, data=IncompleteViews(tuple(views), data.present))


EXPERIMENT = DataSetExperiment(plan, measure, revision=3, large=False)
