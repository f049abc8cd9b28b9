"""What clustering does not show: planted features, and whether the choice stays the same."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.rows import grouped
from stream_fs.evaluate.report.tables import Table, number, with_error
from stream_fs.evaluate.statistics import estimate

TRAITS = ("noise", "loud", "constant", "heavy-tailed")


def traits_table(rows: Sequence[Row]) -> Table:
    """Planted useless features, copies and units."""
    columns = [f"useless: {kind}" for kind in TRAITS]
    columns += ["auc", "repeats", "rank correlation in other units"]
    body = [
        [method, *(with_error(estimate([float(row[c]) for row in of])) for c in columns)]
        for method, of in grouped(rows, "method").items()
    ]
    return Table(
        "Planted features",
        [
            "method",
            *(f"{kind} chosen" for kind in TRAITS),
            "informative before useless",
            "copies among the chosen",
            "rank correlation after a change of units",
        ],
        body,
        "Made data, half of every view missing. Share of each useless kind that is chosen when "
        "as many features are taken as are informative (best 0); chance that an informative "
        "feature stands before a useless one (best 1); share of the chosen that repeat an "
        "earlier choice (best 0). A random order does not look at units at all. ± is the standard "
        "error over repetitions.",
        strong="default",
    )


def planted_in_words(rows: Sequence[Row]) -> str:
    """How well planted features are told apart, beside the best of the others."""
    areas = {
        method: float(np.mean([float(row["auc"]) for row in of]))
        for method, of in grouped(rows, "method").items()
    }
    ours = areas.pop("default")
    text = (
        "Planted features: with default an informative one stands before a useless one with "
        f"chance {number(ours, 2)}"
    )
    if areas:
        best = max(areas, key=lambda method: areas[method])
        text += f", with the best of the others ({best}) {number(areas[best], 2)}"
    return text + "."


def stability_table(rows: Sequence[Row]) -> Table:
    """Overlaps of choices that should be the same."""
    body = []
    for method, of in grouped(rows, "method").items():
        body.append([method])
        for column in ("chunks", "halves", "units"):
            by_set = [
                float(np.nanmean([float(row[column]) for row in part]))
                for part in grouped(of, "dataset").values()
                if not np.isnan([float(row[column]) for row in part]).all()
            ]
            body[-1].append(with_error(estimate(by_set)))
    sets = len({row["dataset"] for row in rows})
    return Table(
        "Stability of the chosen features",
        ["method", "neighbouring chunks", "halves of the data", "other units"],
        body,
        f"Overlap of two choices of 20 % of the features (best 1), mean over {sets} data sets ± "
        "standard error over them. Methods that do not stream are computed again on all rows "
        "so far. The halves have different seeds; elsewhere a random order is the same for the "
        "same seed.",
        strong="default",
    )
