"""The effect of parts and settings: ablation, missing instances, parameters, the judge."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stream_fs.evaluate.experiments import grid, judging, sensitivity
from stream_fs.evaluate.experiments.ablation import UNCHANGED
from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.page import (
    ReportSection,
    Table,
    line_plot,
    number,
    signed,
    with_error,
)
from stream_fs.evaluate.report.results import (
    Comparison,
    PairedDifference,
    Results,
    grouped,
    mean_of,
    nmi_by_dataset,
    overall,
    paired_difference,
)

MIN_HEIGHT = 0.1
"""Height of the y axis of a parameter's figure, in NMI."""


def variant_changes(rows: Sequence[Row]) -> dict[str, PairedDifference]:
    """The change of NMI by variant."""
    values = {variant: nmi_by_dataset(group) for variant, group in grouped(rows, "variant").items()}
    unchanged = values[UNCHANGED]
    return {
        variant: paired_difference(nmi, nmi.__getitem__, unchanged.__getitem__)
        for variant, nmi in values.items()
    }


def ablation_table(rows: Sequence[Row]) -> Table:
    """The change of NMI when one parameter of preset `default` is changed."""
    by_variant = grouped(rows, "variant")
    body = []
    for variant, change in variant_changes(rows).items():
        means = [values.mean() for values in nmi_by_dataset(by_variant[variant]).values()]
        body.append(
            [
                variant,
                number(float(np.mean(means))),
                signed(change.mean),
                number(change.repetition_error),
                number(change.dataset_error),
                f"{change.wins} of {len(means)}",
                "–" if variant == UNCHANGED else change.claim,
            ]
        )
    return Table(
        "Ablation of preset default (NMI)",
        ["variant", "NMI", "change", "± repetitions", "± sets", "better on", "claim"],
        body,
        "Means over both judges on scaled features, 10 and 30 % of the features, and data sets "
        "of up to 5,000 rows, including held-out ones. A change is claimed where it exceeds both "
        "standard errors.",
        strong=UNCHANGED,
    )


def missing_table(rows: Sequence[Row]) -> Table:
    """NMI by share of missing instances."""
    levels = sorted({float(row["missing"]) for row in rows})
    means = {}
    for method, group in grouped(rows, "method").items():
        by_level = {float(level): part for level, part in grouped(group, "missing").items()}
        means[method] = [overall(nmi_by_dataset(by_level[level])) for level in levels]
    lines = {method: [mean.mean for mean in by_level] for method, by_level in means.items()}
    return Table(
        "Share of missing instances (NMI)",
        ["method", *(f"{level:.0%}" for level in levels)],
        [[method, *map(with_error, by_level)] for method, by_level in means.items()],
        "30 % of the features with each method's own budget; means over both judges on scaled "
        "features and data sets of up to 5,000 rows ± standard error over repetitions.",
        [line_plot("NMI by share of missing instances", "missing", "NMI", levels, lines)],
        strong="default",
    )


def parameter_table(rows: Sequence[Row], setup: str, middle: Mapping[str, float]) -> Table:
    """NMI when one parameter differs from the middle of the grid."""
    by_parameter = grouped(rows, "parameter")
    reference = nmi_by_dataset(by_parameter.pop("middle"))
    body: list[list[str]] = []
    figures: list[str] = []
    for parameter, group in by_parameter.items():
        nmi = {
            float(value): nmi_by_dataset(part) for value, part in grouped(group, "value").items()
        }
        nmi[middle[parameter]] = reference
        line = {value: overall(by_dataset).mean for value, by_dataset in sorted(nmi.items())}
        for value, mean in line.items():
            if value == middle[parameter]:
                compared = ["–", "middle"]
            else:
                change = paired_difference(
                    nmi[value], nmi[value].__getitem__, reference.__getitem__
                )
                compared = [with_error(change.over_datasets, difference=True), change.claim]
            body.append([parameter, f"{value:g}", number(mean), *compared])
        figures.append(
            line_plot(
                f"{parameter}: {setup}",
                parameter,
                "NMI",
                list(line),
                {"mean over data sets": list(line.values())},
                logarithmic=parameter != "lam",
                min_height=MIN_HEIGHT,
            )
        )
    return Table(
        f"Parameter sensitivity: preset {setup}",
        ["parameter", "value", "NMI", "less the middle", "claim"],
        body,
        f"One parameter at a time; NMI in the middle is {number(overall(reference).mean)}. Paired "
        "difference ± standard error over data sets; claimed where it exceeds that and the error "
        "over repetitions.",
        figures,
    )


def judge_table(rows: Sequence[Row]) -> Table:
    """NMI with other settings of the judge."""
    methods = list(grouped(rows, "method"))
    body = []
    for setting, group in grouped(rows, "setting").items():
        for value, part in grouped(group, "value").items():
            by_method = grouped(part, "method")
            means = [mean_of(by_method[method], "nmi") for method in methods]
            shown = "–" if setting == judging.UNCHANGED else f"{float(value):g}"
            body.append([setting, shown, *map(number, means)])
    return Table(
        "Sensitivity of the judge GIMC_FLSD (NMI)",
        ["setting", "value", *methods],
        body,
        "In use: λ₁ = 10, r = 3, k = 7 neighbours, features scaled. One repetition; selectors with "
        "30 % of the features; data sets of up to 5,000 rows.",
        strong=judging.UNCHANGED,
    )


def tables(results: Results) -> Iterator[Table]:
    """The tables of this section."""
    if rows := results.rows_of("ablation"):
        yield ablation_table(rows)
    if rows := results.rows_of("missing"):
        yield missing_table(rows)
    if rows := results.rows_of("sensitivity"):
        yield parameter_table(rows, "default, both judges, 30 % of features", sensitivity.MIDDLE)
    if rows := results.rows_of("grid"):
        yield parameter_table(rows, "paper, GIMC_FLSD, all shares", grid.MIDDLE)
    if rows := results.rows_of("judging"):
        yield judge_table(rows)


SECTION = ReportSection(
    "Effect of parts and settings",
    {
        "ablation": Comparison(("variant",), reference=(UNCHANGED,)),
        "missing": Comparison(("missing", "method")),
        "sensitivity": Comparison(("parameter", "value"), reference=("middle", "0.0")),
        "grid": Comparison(("parameter", "value"), reference=("middle", "0.0")),
        "judging": Comparison(("method",)),
    },
    tables,
)
