"""The other experiments' tables, under the question that each of them answers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

from stream_fs.evaluate.experiments import grid, sensitivity
from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.ablation import ablation_table
from stream_fs.evaluate.report.drifting import drift_table
from stream_fs.evaluate.report.merging import merging_table
from stream_fs.evaluate.report.planted import stability_table, traits_table
from stream_fs.evaluate.report.published import Published
from stream_fs.evaluate.report.sensitivity import judging_table, missing_table, parameter_table
from stream_fs.evaluate.report.speed import convergence_figures, speed_tables
from stream_fs.evaluate.report.tables import Table

Builder: TypeAlias = Callable[[Sequence[Row]], Sequence[Table]]


def other_tables(
    rows: Mapping[str, Sequence[Row]], published: Published
) -> dict[str, Sequence[Table]]:
    """By heading, the tables of every experiment that has rows, which are comparable already."""
    ablation = rows.get("ablation", ())
    printed = "paper, GIMC_FLSD, all shares"
    fixed = "default, both judges, 30 % of features"
    builders: Mapping[str, Mapping[str, Builder]] = {
        "What clustering does not show": {
            "traits": lambda of: [traits_table(of)],
            "stability": lambda of: [stability_table(of)],
            "drift": lambda of: [drift_table(of, ablation)],
        },
        "What an update costs": {
            "speed": lambda of: speed_tables(of, published),
            "convergence": lambda of: [convergence_figures(of)],
        },
        "What parts and settings are worth": {
            "ablation": lambda of: [ablation_table(of)],
            "missing": lambda of: [missing_table(of)],
            "sensitivity": lambda of: [parameter_table(of, fixed, sensitivity.MIDDLE)],
            "grid": lambda of: [parameter_table(of, printed, grid.MIDDLE)],
            "judging": lambda of: [judging_table(of)],
        },
    }
    found = {
        heading: [
            table for name, build in of.items() if rows.get(name) for table in build(rows[name])
        ]
        for heading, of in builders.items()
    }
    merged = [*rows.get("merging", ()), *rows.get("merging-long", ())]
    found["Merging partitions"] = merging_table(merged) if merged else []
    return {heading: tables for heading, tables in found.items() if tables}
