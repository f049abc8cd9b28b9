"""Tables of the main comparison: fixed parameters, every judge, both budgets."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from stream_fs.evaluate.plan import ROLES, Entry
from stream_fs.evaluate.report.page import Table, curves, number, signed, with_error
from stream_fs.evaluate.report.results import (
    CONTENDERS,
    EVERYTHING,
    METRICS,
    OURS,
    RIVALS,
    VARIANCE,
    Cells,
    Contender,
    Difference,
    difference,
    estimate,
    overall,
    paired_p,
)

JUDGES = ("gimc", "spectral")
BUDGET_NOTE = "√: a share of all features is divided by √d between the views; ∝: proportionally."


def compared_tables(cells: Cells, entries: Sequence[Entry]) -> list[Table]:
    """Everything about the main comparison, development data first."""
    tables: list[Table] = []
    for role in ROLES:
        names = [e.name for e in entries if e.role == role and e.name in cells.datasets]
        if names:
            tables += [by_judge(cells, names, role, metric) for metric in METRICS]
            tables += [
                by_set(cells, names, role),
                differences(cells, names, role),
                by_share(cells, names, role),
            ]
    return tables


def means_in_words(cells: Cells, entries: Sequence[Entry]) -> Iterator[str]:
    """The overall NMI of `default`, of all features and of the best other ranking."""
    for role in ROLES:
        names = [e.name for e in entries if e.role == role and e.name in cells.datasets]
        if names:
            means = {
                c: overall({name: cells.values(name, c) for name in names}).mean for c in CONTENDERS
            }
            rivals = [c for c in RIVALS if cells.took(c, names)]
            rival = max(rivals, key=lambda c: means[c])
            yield (
                f"Mean NMI over {len(names)} {role} data sets, judges and shares of features: "
                f"default √ {number(means[OURS])}, all features {number(means[EVERYTHING])}, "
                f"{rival.label}, the best of the other rankings, {number(means[rival])}."
            )


def by_judge(cells: Cells, names: Sequence[str], role: str, metric: str) -> Table:
    """Means over data sets and shares with their standard errors, judge by judge."""
    rows = []
    for contender in CONTENDERS:
        row = [contender.label]
        for judge in (*cells.judges, ""):
            looks = cells.looks_of(judge)
            values = {name: cells.values(name, contender, metric, looks) for name in names}
            mark = "*" if against(cells, names, contender, judge, metric=metric).clear else ""
            row.append(with_error(overall(values)) + mark)
        rows.append(row)
    return Table(
        f"{metric.upper()}, {role} data, by judge",
        ["method", *cells.judges, "mean"],
        rows,
        f"Means over {len(names)} data sets ({', '.join(names)}) and {len(cells.shares)} shares of "
        "features ± standard error over repetitions; * differs from default √ by more than both "
        "standard errors of the paired difference, over repetitions and over data sets. "
        f"{BUDGET_NOTE}",
        strong=OURS.label,
    )


def by_set(cells: Cells, names: Sequence[str], role: str) -> Table:
    """Means over judges and shares with their standard errors, data set by data set."""
    rows = []
    for contender in CONTENDERS:
        row = [contender.label]
        for name in names:
            values = cells.values(name, contender)
            mark = "*" if paired_p(values - cells.values(name, OURS)) < 0.05 else ""
            row.append(with_error(estimate(values)) + mark)
        rows.append(row)
    counts = ", ".join(f"{name}: {len(cells.repetitions[name])}" for name in names)
    return Table(
        f"NMI, {role} data, by data set",
        ["method", *names],
        rows,
        "Means over judges and shares ± standard error over repetitions; * differs from default √ "
        f"by a paired t-test (p < 0.05). Repetitions: {counts}.",
        strong=OURS.label,
    )


def against(
    cells: Cells,
    names: Sequence[str],
    rival: Contender,
    judge: str = "",
    shares: Sequence[float] | None = None,
    metric: str = "nmi",
) -> Difference:
    """`default` with its own budget less a rival, by one judge or by both."""
    looks = cells.looks_of(judge)
    return difference(
        names,
        lambda name: cells.values(name, OURS, metric, looks, shares),
        lambda name: cells.values(name, rival, metric, looks, shares),
    )


def differences(cells: Cells, names: Sequence[str], role: str) -> Table:
    """How far `default` is ahead, and how sure that is."""
    rows = []
    for rival in CONTENDERS:
        if rival == OURS or not cells.took(rival, names):
            continue
        total = against(cells, names, rival)
        rows.append(
            [
                rival.label,
                signed(total.mean),
                number(total.repetitions),
                number(total.sets),
                f"{total.wins} of {len(names)}",
                total.claim,
                *(brief(against(cells, names, rival, judge)) for judge in JUDGES),
            ]
        )
    return Table(
        f"default √ less the others, {role} data (NMI)",
        ["other", "difference", "± repetitions", "± sets", "ahead on", "claim", *JUDGES],
        rows,
        "Paired differences, every data set of the same weight. A difference is claimed where it "
        "is above both standard errors.",
    )


def by_share(cells: Cells, names: Sequence[str], role: str) -> Table:
    """`default` against all features and variance, share by share."""
    rows = []
    for share in cells.shares:
        row = [f"{share:.0%}"]
        row += [brief(against(cells, names, EVERYTHING, judge, [share])) for judge in ("", *JUDGES)]
        row += [brief(against(cells, names, rival, "", [share])) for rival in VARIANCE]
        rows.append(row)
    shown = (OURS, Contender("default", "proportional"), *VARIANCE, Contender("paper", "sqrt"))
    lines = {
        c.label: [
            float(np.mean([cells.values(n, c, "nmi", None, [s]).mean() for n in names]))
            for s in cells.shares
        ]
        for c in (*shown, EVERYTHING)
    }
    figure = curves("NMI by share of features", "share of features", "NMI", cells.shares, lines)
    return Table(
        f"default √ by share of features, {role} data (NMI)",
        ["share", "less all", "less all, gimc", "less all, spectral"]
        + [f"less {rival.label}" for rival in VARIANCE],
        rows,
        "Difference ± standard error over data sets.",
        [figure],
    )


def brief(of: Difference) -> str:
    """A difference ± its standard error over data sets."""
    return with_error(of.over_sets, difference=True)
