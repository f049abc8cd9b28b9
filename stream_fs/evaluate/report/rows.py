"""Rows of an experiment, made comparable and grouped."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from stream_fs.evaluate.data import Vector
from stream_fs.evaluate.experiments.ablation import AS_IT_IS
from stream_fs.evaluate.plan import Refused, Row

COMPARED: Mapping[str, Sequence[str]] = {
    "traits": ["method"],
    "stability": ["method"],
    "drift": ["decay", "drift"],
    "speed": ["method"],
    "convergence": ["preset"],
    "ablation": ["variant"],
    "missing": ["missing", "method"],
    "sensitivity": ["parameter", "value"],
    "grid": ["parameter", "value"],
    "judging": ["method"],
}
"""By experiment, what its tables compare."""

REFERENCE: Mapping[str, tuple[str, ...]] = {
    "ablation": (AS_IT_IS,),
    "sensitivity": ("middle", "0.0"),
    "grid": ("middle", "0.0"),
    "speed": ("default",),
    "convergence": ("default",),
}
"""By experiment, what everything on a data set is compared with, not with a mean over data sets.

Where a method refused a data set, the others are compared on it all the same. The tables of the
other experiments have means over data sets, and leave it out.
"""

BySet: TypeAlias = Mapping[str, Vector]
"""Data set → values, one per repetition."""


def comparable(
    rows: Mapping[str, Sequence[Row]], refused: Sequence[Refused] = ()
) -> dict[str, Sequence[Row]]:
    """Every experiment's rows, without problems that were not measured with all settings."""
    found: dict[str, Sequence[Row]] = {}
    for name, of in rows.items():
        if name not in COMPARED:
            found[name] = of
        elif name in REFERENCE:
            found[name] = complete(of, COMPARED[name], _absent(refused, name), REFERENCE[name])
        else:
            found[name] = complete(of, COMPARED[name])
    return found


def _absent(refused: Sequence[Refused], experiment: str) -> dict[str, set[tuple[str, ...]]]:
    """By data set, the combinations that were refused, in any repetition."""
    found: dict[str, set[tuple[str, ...]]] = {}
    for of in refused:
        if of.task.experiment == experiment:
            kind = tuple(str(of.task.settings[c]) for c in COMPARED[experiment])
            found.setdefault(of.task.dataset, set()).add(kind)
    return found


def complete(
    rows: Sequence[Row],
    columns: Sequence[str],
    absent: Mapping[str, Collection[tuple[str, ...]]] | None = None,
    reference: tuple[str, ...] = (),
) -> list[Row]:
    """Rows of the problems (data set, repetition) that have every combination of the columns.

    A run that was stopped has measured some settings on more problems than others: means over
    different problems would not compare. Combinations that are absent from a data set are not
    expected of it, except the reference.
    """
    lacking = absent or {}
    rows = [
        row
        for row in rows
        if reference not in lacking.get(str(row["dataset"]), ())
        and tuple(str(row[c]) for c in columns) not in lacking.get(str(row["dataset"]), ())
    ]
    problems: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        problem = (str(row["dataset"]), str(row["repetition"]))
        problems.setdefault(problem, []).append(row)
    kinds = {
        key: {tuple(str(row[c]) for c in columns) for row in of}.union(lacking.get(key[0], ()))
        for key, of in problems.items()
    }
    whole = max(kinds.values(), key=len, default=set())
    return [row for key, of in problems.items() if kinds[key] >= whole for row in of]


def grouped(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Rows by the text of a column, in order of appearance."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row[column]), []).append(row)
    return found


def nmi_by_set(rows: Iterable[Row]) -> dict[str, Vector]:
    """By data set, the mean NMI of every repetition, in the order of their numbers."""
    return {
        dataset: np.array(
            [
                np.mean([float(row["nmi"]) for row in part])
                for _, part in sorted(grouped(of, "repetition").items(), key=lambda i: int(i[0]))
            ]
        )
        for dataset, of in grouped(rows, "dataset").items()
    }
