"""What the report is written from: results of a run, comparable rows, means and differences.

Every mean is over the same trials for everything that it is compared with: trials that were not
measured completely, because the run was interrupted, are left out.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

import numpy as np
from scipy import stats

from stream_fs.evaluate.datasets import Vector
from stream_fs.evaluate.methods.registry import ALL_FEATURES, BUDGETS, METHODS
from stream_fs.evaluate.plan import DataSetEntry, Options, Row, SkippedMeasurement

PaperFigures: TypeAlias = Mapping[tuple[str, str, str, str], float]
"""The paper's value by metric, data set (by its name in the paper), ratio and method."""


@dataclass(frozen=True)
class Completion:
    """The part of the plan that has been measured."""

    done: int
    planned: int


@dataclass(frozen=True)
class Results:
    """The results of a run, with rows by experiment."""

    rows: Mapping[str, Sequence[Row]]
    entries: Sequence[DataSetEntry]
    options: Options
    completion: Completion
    paper: PaperFigures = field(default_factory=dict)
    skipped: Sequence[SkippedMeasurement] = ()

    def rows_of(self, experiment: str) -> Sequence[Row]:
        """The rows of an experiment, empty if it was not measured."""
        return self.rows.get(experiment, ())


# Comparable rows


@dataclass(frozen=True)
class Comparison:
    """What the tables of an experiment compare: every combination of values of these columns.

    With ``reference``, everything on a data set is compared with that combination: where a method
    was skipped, the others are still compared. Without it, tables have means over data sets, and
    leave a data set out if a method was skipped there.
    """

    columns: tuple[str, ...]
    reference: tuple[str, ...] = ()

    def comparable(self, rows: Sequence[Row], skipped: Iterable[SkippedMeasurement]) -> list[Row]:
        """The rows of trials (data set, repetition) that have every combination of the columns."""
        if not self.reference:
            return complete_trials(rows, self.columns)
        absent: dict[str, set[tuple[str, ...]]] = {}
        for item in skipped:
            values = tuple(str(item.measurement.settings[column]) for column in self.columns)
            absent.setdefault(item.measurement.dataset, set()).add(values)
        rows = [row for row in rows if self.reference not in absent.get(str(row["dataset"]), ())]
        return complete_trials(rows, self.columns, absent)


def complete_trials(
    rows: Sequence[Row],
    columns: Sequence[str],
    absent: Mapping[str, Collection[tuple[str, ...]]] | None = None,
) -> list[Row]:
    """The rows of trials (data set, repetition) that have every combination of the columns.

    An interrupted run has measured some settings on more trials than others, and means over
    different trials would not compare. Combinations that are absent from a data set are not
    expected there.
    """
    absent = absent or {}

    def combination(row: Row) -> tuple[str, ...]:
        return tuple(str(row[column]) for column in columns)

    trials: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        dataset = str(row["dataset"])
        if combination(row) not in absent.get(dataset, ()):
            trials.setdefault((dataset, str(row["repetition"])), []).append(row)
    combinations = {
        trial: {combination(row) for row in group}.union(absent.get(trial[0], ()))
        for trial, group in trials.items()
    }
    expected = max(combinations.values(), key=len, default=set())
    return [row for trial in trials if combinations[trial] >= expected for row in trials[trial]]


# Statistics


@dataclass(frozen=True)
class Estimate:
    """The mean of ``count`` values with its standard error (NaN for a single value)."""

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


@dataclass(frozen=True)
class PairedDifference:
    """A mean paired difference over data sets of equal weight.

    ``repetition_error`` is the standard error over repetitions on the same data sets,
    ``dataset_error`` the one over data sets; NaN where there is a single value.
    """

    mean: float
    repetition_error: float
    dataset_error: float
    by_dataset: dict[str, Estimate]

    @property
    def clear(self) -> bool:
        """Whether it exceeds both standard errors, as far as these are known."""
        errors = (self.repetition_error, self.dataset_error)
        known = [error for error in errors if not np.isnan(error)]
        return bool(known) and abs(self.mean) > max(known)

    @property
    def claim(self) -> str:
        """What may be claimed."""
        if not self.clear:
            return "none"
        return "better" if self.mean > 0 else "worse"

    @property
    def wins(self) -> int:
        """Number of data sets on which it is positive."""
        return sum(estimate.mean > 0 for estimate in self.by_dataset.values())

    @property
    def over_datasets(self) -> Estimate:
        """The mean with the standard error over data sets."""
        return Estimate(self.mean, self.dataset_error, len(self.by_dataset))


def paired_difference(
    datasets: Iterable[str],
    one: Callable[[str], Vector],
    other: Callable[[str], Vector],
) -> PairedDifference:
    """``one − other``, which return the values of a data set, one per repetition."""
    by_dataset = {name: estimate(one(name) - other(name)) for name in datasets}
    errors = np.array([value.error for value in by_dataset.values()])
    known = errors[~np.isnan(errors)]
    repetition_error = float("nan")
    if len(known):
        # A data set with a single repetition is assumed to vary like the others.
        filled = np.where(np.isnan(errors), np.sqrt((known**2).mean()), errors)
        repetition_error = float(np.sqrt((filled**2).sum()) / len(filled))
    total = estimate([value.mean for value in by_dataset.values()])
    return PairedDifference(total.mean, repetition_error, total.error, by_dataset)


def overall(values: Mapping[str, Vector]) -> Estimate:
    """The mean over data sets with the standard error over their repetitions."""
    mean = paired_difference(values, values.__getitem__, lambda name: 0 * values[name])
    return Estimate(mean.mean, mean.repetition_error, len(values))


def grouped(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Rows by the value of a column, as text, in order of appearance."""
    groups: dict[str, list[Row]] = {}
    for row in rows:
        groups.setdefault(str(row[column]), []).append(row)
    return groups


def mean_of(rows: Iterable[Row], column: str) -> float:
    """The mean of a column."""
    return float(np.mean([float(row[column]) for row in rows]))


def nmi_by_dataset(rows: Iterable[Row]) -> dict[str, Vector]:
    """By data set, the mean NMI of every repetition, in the order of their numbers."""
    return {
        dataset: np.array(
            [
                mean_of(part, "nmi")
                for _, part in sorted(grouped(group, "repetition").items(), key=_repetition)
            ]
        )
        for dataset, group in grouped(rows, "dataset").items()
    }


def _repetition(item: tuple[str, list[Row]]) -> int:
    return int(item[0])


# The main comparison


METRICS = ("nmi", "ari", "f")


@dataclass(frozen=True, order=True)
class Contender:
    """A method with the budget that divides its selection between the views."""

    method: str
    budget: str

    @property
    def label(self) -> str:
        """Its name in tables."""
        if self.method == ALL_FEATURES:
            return ALL_FEATURES
        return f"{self.method} {'√' if self.budget == 'sqrt' else '∝'}"


DEFAULT = Contender("default", "sqrt")
EVERYTHING = Contender(ALL_FEATURES, "sqrt")
VARIANCE = (Contender("variance", "sqrt"), Contender("variance", "proportional"))
CONTENDERS = tuple(
    Contender(method, budget)
    for method in METHODS
    for budget in BUDGETS
    if method != ALL_FEATURES or budget == "sqrt"
)
RIVALS = tuple(c for c in CONTENDERS if c.method not in ("default", ALL_FEATURES))
"""Every other ranking method, with either budget."""


class PairedResults:
    """Rows of the main comparison by data set, repetition, contender, judge and share.

    A repetition counts if every method has it. A method that was skipped on a data set has no value
    there (NaN), and no mean over data sets that include it.
    """

    def __init__(
        self, rows: Sequence[Row], skipped: Mapping[str, Collection[str]] | None = None
    ) -> None:
        """The rows, and by data set the methods that were skipped."""
        self._skipped = skipped or {}
        self._values: dict[tuple[str, int], dict[tuple[str, ...], float]] = defaultdict(dict)
        self.judges = sorted({str(row["judge"]) for row in rows})
        self.shares = sorted({float(row["share"]) for row in rows if row["method"] != ALL_FEATURES})
        measured: dict[str, dict[int, set[str]]] = defaultdict(lambda: defaultdict(set))
        for row in rows:
            dataset, repetition = str(row["dataset"]), int(row["repetition"])
            measured[dataset][repetition].add(str(row["method"]))
            shares = self.shares if row["method"] == ALL_FEATURES else [float(row["share"])]
            for share in shares:
                for metric in METRICS:
                    key = (row["method"], row["budget"], row["judge"], f"{share:g}", metric)
                    self._values[dataset, repetition][tuple(map(str, key))] = float(row[metric])
        self.repetitions = {
            name: [
                repetition
                for repetition, methods in sorted(by_repetition.items())
                if methods | set(self._skipped.get(name, ())) >= set(METHODS)
            ]
            for name, by_repetition in measured.items()
        }
        self.datasets = [
            name
            for name, complete in self.repetitions.items()
            if complete and all(self.has(c, [name]) for c in (DEFAULT, EVERYTHING, *VARIANCE))
        ]

    def has(self, contender: Contender, datasets: Iterable[str]) -> bool:
        """Whether the contender was measured on all of these data sets."""
        return not any(contender.method in self._skipped.get(name, ()) for name in datasets)

    def values(
        self,
        dataset: str,
        contender: Contender,
        metric: str = "nmi",
        judges: Sequence[str] | None = None,
        shares: Sequence[float] | None = None,
    ) -> Vector:
        """By repetition, the mean over judges and shares; NaN where the method was skipped."""
        if not self.has(contender, [dataset]):
            return np.full(len(self.repetitions[dataset]), np.nan)
        judges = self.judges if judges is None else judges
        shares = self.shares if shares is None else shares
        method, budget = contender.method, contender.budget
        return np.array(
            [
                np.mean(
                    [
                        self._values[dataset, repetition][
                            method, budget, judge, f"{share:g}", metric
                        ]
                        for judge in judges
                        for share in shares
                    ]
                )
                for repetition in self.repetitions[dataset]
            ]
        )

    def variants_of(self, judge: str) -> list[str]:
        """A judge on raw and on scaled features; all variants for the empty name."""
        return [variant for variant in self.judges if variant.startswith(judge)]
