"""Rows of an experiment, made comparable and grouped."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from stream_fs.evaluate.data import Vector
from stream_fs.evaluate.plan import Row

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

BySet: TypeAlias = Mapping[str, Vector]
"""Data set → values, one per repetition."""


def comparable(rows: Mapping[str, Sequence[Row]]) -> dict[str, Sequence[Row]]:
    """Every experiment's rows, without problems that were not measured with all settings."""
    return {
        name: complete(of, COMPARED[name]) if name in COMPARED else of for name, of in rows.items()
    }


def complete(rows: Sequence[Row], columns: Sequence[str]) -> list[Row]:
    """Rows of the problems (data set, repetition) that have every combination of the columns.

    A run that was stopped has measured some settings on more problems than others: means over
    different problems would not compare.
    """
    problems: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        problem = (str(row["dataset"]), str(row["repetition"]))
        problems.setdefault(problem, []).append(row)
    kinds = {
        key: {tuple(str(row[c]) for c in columns) for row in of} for key, of in problems.items()
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
