"""Tables of the main comparison: fixed parameters, every judge, both budgets; and the goals."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_fs.evaluate.plan import Entry
from stream_fs.evaluate.report.cells import (
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
)
from stream_fs.evaluate.report.plots import curves
from stream_fs.evaluate.report.tables import Table, number, signed, with_error
from stream_fs.evaluate.statistics import estimate, paired_p

JUDGES = ("gimc", "spectral")
BUDGET_NOTE = "√: a share of all features is divided by √d between the views; ∝: proportionally."
LEAST_WINS = 5
LEVEL_FROM = 0.2
ABOVE_FROM = 0.3


def compared_tables(cells: Cells, entries: Sequence[Entry]) -> list[Table]:
    """Everything about the main comparison, development data first."""
    tables: list[Table] = []
    for role in ("development", "held-out"):
        names = [e.name for e in entries if e.role == role and e.name in cells.datasets]
        if names:
            tables += [by_judge(cells, names, role, metric) for metric in METRICS]
            tables += [
                by_set(cells, names, role),
                differences(cells, names, role),
                by_share(cells, names, role),
            ]
    return tables


def by_judge(cells: Cells, names: Sequence[str], role: str, metric: str) -> Table:
    """Means over data sets and shares, judge by judge."""
    rows = []
    for contender in CONTENDERS:
        means = [
            np.mean([cells.values(name, contender, metric, [look]).mean() for name in names])
            for look in cells.judges
        ]
        rows.append([contender.label, *map(number, means), number(float(np.mean(means)))])
    return Table(
        f"{metric.upper()}, {role} data, by judge",
        ["method", *cells.judges, "mean"],
        rows,
        f"Means over {len(names)} data sets ({', '.join(names)}) and {len(cells.shares)} shares of "
        f"features. {BUDGET_NOTE}",
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
    )


def against(
    cells: Cells,
    names: Sequence[str],
    rival: Contender,
    judge: str = "",
    shares: Sequence[float] | None = None,
) -> Difference:
    """`default` with its own budget less a rival, in NMI, by one judge or by both."""
    looks = cells.looks_of(judge)
    return difference(
        names,
        lambda name: cells.values(name, OURS, "nmi", looks, shares),
        lambda name: cells.values(name, rival, "nmi", looks, shares),
    )


def differences(cells: Cells, names: Sequence[str], role: str) -> Table:
    """How far `default` is ahead, and how sure that is."""
    rows = []
    for rival in CONTENDERS:
        if rival == OURS:
            continue
        total = against(cells, names, rival)
        rows.append(
            [
                rival.label,
                signed(total.mean),
                number(total.repetitions),
                number(total.sets),
                f"{total.wins} of {len(names)}",
                _claim(total),
                *(_brief(against(cells, names, rival, judge)) for judge in JUDGES),
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
        row += [
            _brief(against(cells, names, EVERYTHING, judge, [share])) for judge in ("", *JUDGES)
        ]
        row += [_brief(against(cells, names, rival, "", [share])) for rival in VARIANCE]
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


def goals(cells: Cells, entries: Sequence[Entry]) -> Table:
    """What the method is meant to reach, and whether it does, on development and held-out data."""
    rows: list[list[str]] = []
    for role in ("development", "held-out"):
        names = [e.name for e in entries if e.role == role and e.name in cells.datasets]
        if not names:
            continue
        for judge in JUDGES:
            worst = min((against(cells, names, c, judge) for c in RIVALS), key=lambda d: d.mean)
            rival = min(RIVALS, key=lambda c: against(cells, names, c, judge).mean)
            text = f"above every other ranking method, either budget, {judge}"
            rows.append(
                [role, text, f"{rival.label}: {_brief(worst)}", _met(worst.mean > 0, worst)]
            )
        need = min(LEAST_WINS, len(names))
        for rival in VARIANCE:
            of = against(cells, names, rival)
            text = f"ahead of {rival.label} on at least {need} of {len(names)} data sets"
            rows.append([role, text, f"{of.wins}", "met" if of.wins >= need else "not met"])
        for share in cells.shares:
            of = against(cells, names, EVERYTHING, "", [share])
            if share >= ABOVE_FROM:
                text = f"above all features with {share:.0%} of them"
                rows.append([role, text, _brief(of), _met(of.mean > 0, of)])
            elif share >= LEVEL_FROM:
                level = of.mean > 0 or not of.clear
                text = f"level with all features with {share:.0%} of them"
                rows.append([role, text, _brief(of), "met" if level else "not met"])
    return Table(
        "Goals",
        ["data", "goal", "measured", "result"],
        rows,
        "Differences in NMI ± standard error over data sets. “On average only” means that the "
        "difference is not above both standard errors, so nothing is claimed.",
    )


def _met(reached: bool, of: Difference) -> str:
    if not reached:
        return "not met"
    return "met" if of.clear else "met on average only"


def _claim(of: Difference) -> str:
    if not of.clear:
        return "none"
    return "better" if of.mean > 0 else "worse"


def _brief(of: Difference) -> str:
    error = "" if np.isnan(of.sets) else f" ± {of.sets:.3f}"
    return signed(of.mean) + error
