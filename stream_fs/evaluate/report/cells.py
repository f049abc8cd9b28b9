"""The main comparison's rows, ready to be averaged and paired.

A contender is a method with a budget. Repetitions that are not complete, because the run was
stopped, are left out: every mean is over the same problems for every contender. A method that
refused a data set has no value there (NaN), and no mean over data sets that include it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.evaluate.data import Vector
from stream_fs.evaluate.methods import ALL, BUDGETS, METHODS
from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.statistics import Estimate, estimate

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
