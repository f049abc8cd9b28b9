"""The main comparison's rows, ready to be averaged and paired.

A contender is a method with a budget. Repetitions that are not complete, because the run was
stopped, are left out: every mean is over the same problems for every contender. A method that
refused a data set has no value there (NaN), and no mean over data sets that include it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from scipy import stats

from stream_fs.evaluate.datasets import Vector
from stream_fs.evaluate.experiments.ablation import AS_IT_IS
from stream_fs.evaluate.methods.registry import ALL, BUDGETS, METHODS
from stream_fs.evaluate.plan import Refused, Row


@dataclass(frozen=True)
class Estimate:
    """A mean, the standard error of it (NaN for a single value), and how many values it is of."""

    mean: float
    error: float
    count: int

    @property
    def clear(self) -> bool:
        """Whether it differs from 0 by more than its standard error."""
        return bool(abs(self.mean) > self.error)


def estimate(values: Sequence[float] | Vector) -> Estimate:
    """Mean and its standard error, ``s / √n`` with n − 1 degrees of freedom."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) == 0:
        return Estimate(float("nan"), float("nan"), 0)
    error = float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else float("nan")
    return Estimate(float(array.mean()), error, len(array))


def paired_p(differences: Sequence[float] | Vector) -> float:
    """Two-sided p of a paired t-test; 1 where there is nothing to test."""
    array = np.asarray(differences, dtype=np.float64)
    if len(array) < 2 or not array.any():
        return 1.0
    if np.ptp(array) == 0:
        return 0.0
    return float(stats.ttest_1samp(array, 0.0).pvalue)


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


METRICS = ("nmi", "ari", "f")


@dataclass(frozen=True, order=True)
class Contender:
    """A method with the budget that divides its choice between the views."""

    method: str
    budget: str

    @property
    def label(self) -> str:
        """How tables name it."""
        if self.method == ALL:
            return ALL
        return f"{self.method} {'√' if self.budget == 'sqrt' else '∝'}"


OURS = Contender("default", "sqrt")
EVERYTHING = Contender(ALL, "sqrt")
VARIANCE = (Contender("variance", "sqrt"), Contender("variance", "proportional"))
CONTENDERS = tuple(
    Contender(method, budget)
    for method in METHODS
    for budget in BUDGETS
    if method != ALL or budget == "sqrt"
)
RIVALS = tuple(c for c in CONTENDERS if c.method not in ("default", ALL))
"""Every other ranking method, with either budget."""


class Cells:
    """Values by data set, repetition, contender, judge and share."""

    def __init__(
        self, rows: Sequence[Row], refused: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """The rows, and by data set the methods that refused it."""
        self._refused = refused or {}
        self._values: dict[tuple[str, int], dict[tuple[str, ...], float]] = defaultdict(dict)
        self.judges = sorted({str(row["judge"]) for row in rows})
        self.shares = sorted({float(row["share"]) for row in rows if row["method"] != ALL})
        found: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for row in rows:
            place = (str(row["dataset"]), int(row["repetition"]))
            found[place[0]][place[1]].add(str(row["method"]))
            shares = self.shares if row["method"] == ALL else [float(row["share"])]
            for share in shares:
                for metric in METRICS:
                    key = (row["method"], row["budget"], row["judge"], f"{share:g}", metric)
                    self._values[place][tuple(map(str, key))] = float(row[metric])
        self.repetitions = {
            name: [
                repetition
                for repetition, methods in sorted(of.items())
                if methods | set(self._refused.get(name, ())) >= set(METHODS)
            ]
            for name, of in found.items()
        }
        self.datasets = [
            name
            for name, complete in self.repetitions.items()
            if complete and all(self.took(c, [name]) for c in (OURS, EVERYTHING, *VARIANCE))
        ]

    def took(self, contender: Contender, datasets: Iterable[str]) -> bool:
        """Whether the contender's method took all of these data sets."""
        return not any(contender.method in self._refused.get(name, ()) for name in datasets)

    def values(
        self,
        dataset: str,
        contender: Contender,
        metric: str = "nmi",
        judges: Sequence[str] | None = None,
        shares: Sequence[float] | None = None,
    ) -> Vector:
        """Per repetition, the mean over judges and shares; NaN where the method refused the set."""
        if not self.took(contender, [dataset]):
            return np.full(len(self.repetitions[dataset]), np.nan)
        looks = self.judges if judges is None else judges
        parts = self.shares if shares is None else shares
        return np.array(
            [
                np.mean(
                    [
                        self._values[dataset, repetition][
                            contender.method, contender.budget, judge, f"{share:g}", metric
                        ]
                        for judge in looks
                        for share in parts
                    ]
                )
                for repetition in self.repetitions[dataset]
            ]
        )

    def looks_of(self, judge: str) -> list[str]:
        """A judge on raw and on scaled features."""
        return [look for look in self.judges if look.startswith(judge)]


@dataclass(frozen=True)
class Difference:
    """A mean paired difference over data sets, each of the same weight.

    ``repetitions`` is the standard error from repeating on the same data sets, ``sets`` the one
    from taking other data sets; NaN where it cannot be known.
    """

    mean: float
    repetitions: float
    sets: float
    by_set: dict[str, Estimate]

    @property
    def clear(self) -> bool:
        """Whether it is above both standard errors that are known."""
        known = [error for error in (self.repetitions, self.sets) if not np.isnan(error)]
        return bool(known) and abs(self.mean) > max(known)

    @property
    def claim(self) -> str:
        """What may be said of it."""
        if not self.clear:
            return "none"
        return "better" if self.mean > 0 else "worse"

    @property
    def wins(self) -> int:
        """Data sets on which it is positive."""
        return sum(of.mean > 0 for of in self.by_set.values())

    @property
    def over_sets(self) -> Estimate:
        """The mean with the standard error over data sets."""
        return Estimate(self.mean, self.sets, len(self.by_set))


def difference(
    datasets: Sequence[str],
    one: Callable[[str], Vector],
    other: Callable[[str], Vector],
) -> Difference:
    """``one − other``; both give the values of a data set, one per repetition."""
    by_set = {name: estimate(one(name) - other(name)) for name in datasets}
    means = [of.mean for of in by_set.values()]
    errors = np.array([of.error for of in by_set.values()])
    known = errors[~np.isnan(errors)]
    repetitions = float("nan")
    if len(known):
        # A data set that was not repeated is taken to vary as the others do.
        filled = np.where(np.isnan(errors), np.sqrt((known**2).mean()), errors)
        repetitions = float(np.sqrt((filled**2).sum()) / len(filled))
    total = estimate(means)
    return Difference(total.mean, repetitions, total.error, by_set)


def overall(values: Mapping[str, Vector]) -> Estimate:
    """The mean over data sets with the standard error over their repetitions."""
    of = difference(list(values), values.__getitem__, lambda name: 0 * values[name])
    return Estimate(of.mean, of.repetitions, len(values))
