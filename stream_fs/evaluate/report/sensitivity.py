"""How much settings matter: missing instances, parameters, and those of the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.cells import difference, overall
from stream_fs.evaluate.report.plots import curves
from stream_fs.evaluate.report.rows import grouped, nmi_by_set
from stream_fs.evaluate.report.tables import Table, number, with_error

LEAST_HEIGHT = 0.1
"""Of a curve's axis, in NMI."""


def missing_table(rows: Sequence[Row]) -> Table:
    """NMI by share of missing instances."""
    levels = sorted({float(row["missing"]) for row in rows})
    found = {}
    for method, of in grouped(rows, "method").items():
        by_level = {float(level): part for level, part in grouped(of, "missing").items()}
        found[method] = [overall(nmi_by_set(by_level[level])) for level in levels]
    lines = {method: [value.mean for value in of] for method, of in found.items()}
    return Table(
        "Share of missing instances (NMI)",
        ["method", *(f"{level:.0%}" for level in levels)],
        [[method, *map(with_error, of)] for method, of in found.items()],
        "30 % of the features with each method's own budget; means over both judges on scaled "
        "features and data sets of up to 5,000 rows ± standard error over repetitions.",
        [curves("NMI by share of missing instances", "missing", "NMI", levels, lines)],
        strong="default",
    )


def parameter_table(rows: Sequence[Row], what: str, middle: Mapping[str, float]) -> Table:
    """NMI when one parameter leaves the middle, whose values are given, and the curves."""
    by_parameter = grouped(rows, "parameter")
    unmoved = nmi_by_set(by_parameter.pop("middle"))
    body: list[list[str]] = []
    figures: list[str] = []
    for parameter, of in by_parameter.items():
        found = {float(value): nmi_by_set(part) for value, part in grouped(of, "value").items()}
        found[middle[parameter]] = unmoved
        line = {value: overall(by_set).mean for value, by_set in sorted(found.items())}
        for value, mean in line.items():
            less = difference(list(found[value]), found[value].__getitem__, unmoved.__getitem__)
            told = [with_error(less.over_sets, difference=True), less.claim]
            is_middle = value == middle[parameter]
            body.append(
                [parameter, f"{value:g}", number(mean), *(["–", "middle"] if is_middle else told)]
            )
        figures.append(
            curves(
                f"{parameter}: {what}",
                parameter,
                "NMI",
                list(line),
                {"mean over data sets": list(line.values())},
                logarithmic=parameter != "lam",
                least_height=LEAST_HEIGHT,
            )
        )
    return Table(
        f"Parameter sensitivity: preset {what}",
        ["parameter", "value", "NMI", "less the middle", "claim"],
        body,
        f"One parameter at a time; the middle gives {number(overall(unmoved).mean)}. Paired "
        "difference ± standard error over data sets; claimed where it is above that and above the "
        "one over repetitions.",
        figures,
    )


def judging_table(rows: Sequence[Row]) -> Table:
    """NMI with other settings of the judge."""
    methods = list(grouped(rows, "method"))
    body = []
    for setting, of in grouped(rows, "setting").items():
        for value, part in grouped(of, "value").items():
            by_method = grouped(part, "method")
            means = [float(np.mean([float(r["nmi"]) for r in by_method[m]])) for m in methods]
            shown = "–" if setting == "in use" else f"{float(value):g}"
            body.append([setting, shown, *map(number, means)])
    return Table(
        "Sensitivity of the judge GIMC_FLSD (NMI)",
        ["setting", "value", *methods],
        body,
        "In use: pull λ₁ = 10, smoothness r = 3, k = 7 neighbours, features scaled. One "
        "repetition; selectors with 30 % of the features; data sets of up to 5,000 rows.",
        strong="in use",
    )
