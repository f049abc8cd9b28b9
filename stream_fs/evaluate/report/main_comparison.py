"""Tables of the main comparison: fixed parameters, every judge, both budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stream_fs.evaluate.plan import ROLES, DataSetEntry
from stream_fs.evaluate.report.page import Table, line_plot, number, signed, with_error
from stream_fs.evaluate.report.results import (
    CONTENDERS,
    DEFAULT,
    EVERYTHING,
    METRICS,
    RIVALS,
    VARIANCE,
    Contender,
    PairedDifference,
    PairedResults,
    estimate,
    overall,
    paired_difference,
    paired_p,
)

JUDGES = ("gimc", "spectral")
BUDGET_NOTE = "√: a share of all features is divided by √d between the views; ∝: proportionally."


def comparison_tables(paired: PairedResults, entries: Sequence[DataSetEntry]) -> list[Table]:
    """All tables of the main comparison, development data first."""
    tables: list[Table] = []
    for role in ROLES:
        names = [e.name for e in entries if e.role == role and e.name in paired.datasets]
        if names:
            tables += [by_judge(paired, names, role, metric) for metric in METRICS]
            tables += [
                by_set(paired, names, role),
                differences(paired, names, role),
                by_share(paired, names, role),
            ]
    return tables


def mean_sentences(paired: PairedResults, entries: Sequence[DataSetEntry]) -> Iterator[str]:
    """The overall NMI of `default`, of all features and of the best other ranking, by role."""
    for role in ROLES:
        names = [e.name for e in entries if e.role == role and e.name in paired.datasets]
        if names:
            means = {
                c: overall({name: paired.values(name, c) for name in names}).mean
                for c in CONTENDERS
            }
            rivals = [c for c in RIVALS if paired.has(c, names)]
            rival = max(rivals, key=lambda c: means[c])
            yield (
                f"Mean NMI over {len(names)} {role} data sets, judges and shares of features: "
                f"default √ {number(means[DEFAULT])}, all features {number(means[EVERYTHING])}, "
                f"{rival.label}, the best of the other rankings, {number(means[rival])}."
            )


def by_judge(paired: PairedResults, names: Sequence[str], role: str, metric: str) -> Table:
    """Means over data sets and shares with their standard errors, judge by judge."""
    rows = []
    for contender in CONTENDERS:
        row = [contender.label]
        for judge in (*paired.judges, ""):
            variants = paired.variants_of(judge)
            values = {name: paired.values(name, contender, metric, variants) for name in names}
            mark = "*" if against(paired, names, contender, judge, metric=metric).clear else ""
            row.append(with_error(overall(values)) + mark)
        rows.append(row)
    return Table(
        f"{metric.upper()}, {role} data, by judge",
        ["method", *paired.judges, "mean"],
        rows,
        f"Means over {len(names)} data sets ({', '.join(names)}) and {len(paired.shares)} shares "
        "of features ± standard error over repetitions; * differs from default √ by more than "
        "both standard errors of the paired difference, over repetitions and over data sets. "
        f"{BUDGET_NOTE}",
        strong=DEFAULT.label,
    )


def by_set(paired: PairedResults, names: Sequence[str], role: str) -> Table:
    """Means over judges and shares with their standard errors, data set by data set."""
    rows = []
    for contender in CONTENDERS:
        row = [contender.label]
        for name in names:
            values = paired.values(name, contender)
            mark = "*" if paired_p(values - paired.values(name, DEFAULT)) < 0.05 else ""
            row.append(with_error(estimate(values)) + mark)
        rows.append(row)
    counts = ", ".join(f"{name}: {len(paired.repetitions[name])}" for name in names)
    return Table(
        f"NMI, {role} data, by data set",
        ["method", *names],
        rows,
        "Means over judges and shares ± standard error over repetitions; * differs from default √ "
        f"by a paired t-test (p < 0.05). Repetitions: {counts}.",
        strong=DEFAULT.label,
    )


def against(
    paired: PairedResults,
    names: Sequence[str],
    rival: Contender,
    judge: str = "",
    shares: Sequence[float] | None = None,
    metric: str = "nmi",
) -> PairedDifference:
    """`default` with its own budget less a rival, by one judge or, for the empty name, by both."""
    variants = paired.variants_of(judge)
    return paired_difference(
        names,
        lambda name: paired.values(name, DEFAULT, metric, variants, shares),
        lambda name: paired.values(name, rival, metric, variants, shares),
    )


def differences(paired: PairedResults, names: Sequence[str], role: str) -> Table:
    """The lead of `default` over every other contender, with its standard errors."""
    rows = []
    for rival in CONTENDERS:
        if rival == DEFAULT or not paired.has(rival, names):
            continue
        total = against(paired, names, rival)
        rows.append(
            [
                rival.label,
                signed(total.mean),
                number(total.repetition_error),
                number(total.dataset_error),
                f"{total.wins} of {len(names)}",
                total.claim,
                *(brief(against(paired, names, rival, judge)) for judge in JUDGES),
            ]
        )
    return Table(
        f"default √ less the others, {role} data (NMI)",
        ["other", "difference", "± repetitions", "± sets", "ahead on", "claim", *JUDGES],
        rows,
        "Paired differences, data sets of equal weight. A difference is claimed where it exceeds "
        "both standard errors.",
    )


def by_share(paired: PairedResults, names: Sequence[str], role: str) -> Table:
    """`default` against all features and variance, share by share."""
    rows = []
    for share in paired.shares:
        row = [f"{share:.0%}"]
        row += [
            brief(against(paired, names, EVERYTHING, judge, [share])) for judge in ("", *JUDGES)
        ]
        row += [brief(against(paired, names, rival, "", [share])) for rival in VARIANCE]
        rows.append(row)
    shown = (DEFAULT, Contender("default", "proportional"), *VARIANCE, Contender("paper", "sqrt"))
    lines = {
        c.label: [
            float(np.mean([paired.values(n, c, "nmi", None, [s]).mean() for n in names]))
            for s in paired.shares
        ]
        for c in (*shown, EVERYTHING)
    }
    figure = line_plot("NMI by share of features", "share of features", "NMI", paired.shares, lines)
    return Table(
        f"default √ by share of features, {role} data (NMI)",
        ["share", "less all", "less all, gimc", "less all, spectral"]
        + [f"less {rival.label}" for rival in VARIANCE],
        rows,
        "Difference ± standard error over data sets.",
        [figure],
    )


def brief(difference: PairedDifference) -> str:
    """A difference ± its standard error over data sets."""
    return with_error(difference.over_datasets, difference=True)
