"""The paper's own figures beside ours, where the data are the same.

They are read from ``paper_tables.csv`` (metric, dataset, ratio, method, value), which the user's
data directory may hold.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stream_fs.evaluate.errors import DataMalformed
from stream_fs.evaluate.experiments.grid import LOOK
from stream_fs.evaluate.plan import DEVELOPMENT, Row
from stream_fs.evaluate.report.page import Table, number
from stream_fs.evaluate.report.results import EVERYTHING, METRICS, OURS, Cells, Contender

TABLES = "paper_tables.csv"
NAMES: Mapping[str, str] = {
    **{name: name for name in DEVELOPMENT},
    "3Sources": "3S",
    "BBCSport": "BBCS",
    "WebWashington": "WebW",
}
RECOMPUTED = ("USPS", "Caltech101-7")
"""The features of these sets were computed again: their figures do not compare with the paper's."""

Published = Mapping[tuple[str, str, str, str], float]
"""Metric, data set as the paper calls it, ratio, method → value."""


def read_published(directory: Path) -> Published:
    """The paper's figures, or nothing where the file is not there."""
    path = directory / TABLES
    if not path.is_file():
        return {}
    with path.open(encoding="utf-8", newline="") as file:
        try:
            return {
                (row["metric"], row["dataset"], f"{float(row['ratio']):g}", row["method"]): float(
                    row["value"]
                )
                for row in csv.DictReader(file)
            }
        except (KeyError, ValueError, TypeError) as error:
            raise DataMalformed(
                f"{path.name} needs the columns metric, dataset, ratio, method and value"
            ) from error


def best_of_grid(rows: Sequence[Row], metric: str) -> dict[tuple[str, str], float]:
    """By data set and share, the best setting's mean over repetitions: labels choose."""
    values: dict[tuple[str, str], dict[tuple[str, float], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        place = (str(row["dataset"]), f"{float(row['share']):g}")
        setting = (str(row["parameter"]), float(row["value"]))
        values[place][setting].append(float(row[metric]))
    return {
        place: max(float(np.mean(of)) for of in settings.values())
        for place, settings in values.items()
    }


def published_tables(published: Published, grid: Sequence[Row], cells: Cells | None) -> list[Table]:
    """The paper's protocol and fixed parameters beside the paper, GIMC_FLSD on scaled features."""
    tables = [_grid_table(published, grid)] if grid else []
    if cells is not None and published:
        tables += [_methods_table(published, grid, cells, metric) for metric in METRICS]
        tables.append(_ablation_table(published, cells))
    return tables


def _grid_table(published: Published, grid: Sequence[Row]) -> Table:
    shares = sorted({f"{float(row['share']):g}" for row in grid})
    rows = []
    for metric in METRICS:
        best = best_of_grid(grid, metric)
        for name in dict.fromkeys(str(row["dataset"]) for row in grid):
            ours = [best.get((name, share), float("nan")) for share in shares]
            rows.append([metric.upper(), named(name), "ours", *map(number, ours)])
            theirs = [_figure(published, metric, name, share, "I2MUFS") for share in shares]
            if not np.isnan(theirs).all():
                rows.append([metric.upper(), named(name), "the paper's", *map(number, theirs)])
    return Table(
        "The paper's protocol: preset paper over its grid, beside I²MUFS in the paper",
        ["metric", "data set", "figures", *(f"{float(share):.0%}" for share in shares)],
        rows,
        "The labels choose the setting, here one parameter at a time from the middle (β = η = θ = "
        "1, λ = 6; the full grid is 1,250 settings), there over the full grid. "
        + comparable_note(),
    )


def _methods_table(published: Published, grid: Sequence[Row], cells: Cells, metric: str) -> Table:
    best = best_of_grid(grid, metric)
    shares = [f"{share:g}" for share in cells.shares]
    pairs = [
        ("All", EVERYTHING),
        ("LapScore", Contender("Laplacian score", "proportional")),
        ("OMVFS", Contender("OMVFS", "proportional")),
    ]
    rows = []
    for name in (n for n in cells.datasets if n in NAMES):
        row = [named(name), _mean_figure(published, metric, name, shares, "I2MUFS")]
        row.append(number(_mean([best.get((name, s), float("nan")) for s in shares])))
        row += [
            number(float(cells.values(name, contender, metric, [LOOK]).mean()))
            for contender in (Contender("paper", "proportional"), OURS)
        ]
        for theirs, contender in pairs:
            row.append(_mean_figure(published, metric, name, shares, theirs))
            row.append(number(float(cells.values(name, contender, metric, [LOOK]).mean())))
        rows.append(row)
    header = ["data set", "I²MUFS in the paper", "paper, grid", "paper, fixed", "default, fixed"]
    for theirs, _ in pairs:
        header += [f"{theirs} in the paper", f"{theirs} here"]
    return Table(
        f"{metric.upper()} beside the paper's, means over shares, GIMC_FLSD on scaled features",
        header,
        rows,
        "“Grid” figures were chosen by the labels, as all of the paper's were; “fixed” and “here” "
        "were not. " + comparable_note(),
    )


def _ablation_table(published: Published, cells: Cells) -> Table:
    shares = [f"{share:g}" for share in cells.shares]
    rows = []
    for name in (n for n in cells.datasets if n in NAMES):
        row = [named(name)]
        for metric in METRICS:
            row.append(_mean_figure(published, metric, name, shares, "I2MUFS"))
            row.append(_mean_figure(published, metric, name, shares, "C-I2MUFS"))
            for method in ("paper", "classical"):
                values = cells.values(name, Contender(method, "proportional"), metric, [LOOK])
                row.append(number(float(values.mean())))
        rows.append(row)
    header = ["data set"]
    for metric in METRICS:
        of = metric.upper()
        header += [f"{of} I²MUFS", f"{of} C-I²MUFS", f"{of} paper here", f"{of} classical here"]
    return Table(
        "Ablation (Table 6): without quality weights and view weights",
        header,
        rows,
        "Means over shares; presets paper and classical with fixed parameters, GIMC_FLSD on scaled "
        "features. " + comparable_note(),
    )


def comparable_note() -> str:
    """Why some data sets have a mark."""
    return f"Features of {' and '.join(RECOMPUTED)} (†) were recomputed: not comparable."


def named(name: str) -> str:
    """A data set, marked where its features are not the paper's."""
    return f"{name} †" if name in RECOMPUTED else name


def _figure(published: Published, metric: str, name: str, share: str, method: str) -> float:
    key = ("F" if metric == "f" else metric.upper(), NAMES.get(name, ""), share, method)
    return published.get(key, float("nan"))


def _mean_figure(
    published: Published, metric: str, name: str, shares: Sequence[str], method: str
) -> str:
    return number(_mean([_figure(published, metric, name, share, method) for share in shares]))


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")
