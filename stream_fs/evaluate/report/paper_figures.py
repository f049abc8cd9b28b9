"""The paper's own figures beside those measured here.

They are read from ``paper_tables.csv`` (metric, dataset, ratio, method, value), an optional file of
the user's data directory.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from stream_fs.evaluate.errors import DataMalformed
from stream_fs.evaluate.experiments.grid import JUDGE
from stream_fs.evaluate.plan import DEVELOPMENT, Row
from stream_fs.evaluate.report.page import Table, number
from stream_fs.evaluate.report.results import (
    DEFAULT,
    EVERYTHING,
    METRICS,
    Contender,
    PairedResults,
    PaperFigures,
    Results,
)

TABLES = "paper_tables.csv"
NAMES: Mapping[str, str] = {
    **{name: name for name in DEVELOPMENT},
    "3Sources": "3S",
    "BBCSport": "BBCS",
    "WebWashington": "WebW",
}
RECOMPUTED = ("USPS", "Caltech101-7")
"""The features of these data sets were recomputed: their figures are not comparable."""


def read_paper_figures(directory: Path) -> PaperFigures:
    """The paper's figures, empty if there is no file."""
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
    """By data set and share, the mean over repetitions of the setting that the labels choose."""
    values: dict[tuple[str, str], dict[tuple[str, float], list[float]]] = defaultdict(
        lambda: defaultdict(list)
    )
    for row in rows:
        place = (str(row["dataset"]), f"{float(row['share']):g}")
        setting = (str(row["parameter"]), float(row["value"]))
        values[place][setting].append(float(row[metric]))
    return {
        place: max(float(np.mean(repeated)) for repeated in settings.values())
        for place, settings in values.items()
    }


def paper_tables(results: Results, paired: PairedResults | None) -> list[Table]:
    """The paper's protocol and fixed parameters beside the paper, GIMC_FLSD on scaled features."""
    paper, grid = results.paper, results.rows_of("grid")
    tables = [_grid_table(paper, grid)] if grid else []
    if paired is not None and paper:
        tables += [_methods_table(paper, grid, paired, metric) for metric in METRICS]
        tables.append(_ablation_table(paper, paired))
    return tables


def _grid_table(paper: PaperFigures, grid: Sequence[Row]) -> Table:
    shares = sorted({f"{float(row['share']):g}" for row in grid})
    rows = []
    for metric in METRICS:
        best = best_of_grid(grid, metric)
        for name in dict.fromkeys(str(row["dataset"]) for row in grid):
            measured = [best.get((name, share), float("nan")) for share in shares]
            rows.append([metric.upper(), marked_name(name), "here", *map(number, measured)])
            printed = [_figure(paper, metric, name, share, "I2MUFS") for share in shares]
            if not np.isnan(printed).all():
                rows.append(
                    [metric.upper(), marked_name(name), "in the paper", *map(number, printed)]
                )
    return Table(
        "The paper's protocol: preset paper over its grid, beside I²MUFS in the paper",
        ["metric", "data set", "figures", *(f"{float(share):.0%}" for share in shares)],
        rows,
        "The labels choose the setting, here one parameter at a time from the middle (β = η = θ = "
        "1, λ = 6; the full grid is 1,250 settings), there over the full grid. "
        + comparability_note(),
    )


def _methods_table(
    paper: PaperFigures, grid: Sequence[Row], paired: PairedResults, metric: str
) -> Table:
    best = best_of_grid(grid, metric)
    shares = [f"{share:g}" for share in paired.shares]
    pairs = [
        ("All", EVERYTHING),
        ("LapScore", Contender("Laplacian score", "proportional")),
        ("OMVFS", Contender("OMVFS", "proportional")),
    ]
    rows = []
    for name in (n for n in paired.datasets if n in NAMES):
        row = [marked_name(name), _mean_figure(paper, metric, name, shares, "I2MUFS")]
        row.append(number(_mean([best.get((name, s), float("nan")) for s in shares])))
        row += [
            number(float(paired.values(name, contender, metric, [JUDGE]).mean()))
            for contender in (Contender("paper", "proportional"), DEFAULT)
        ]
        for paper_name, contender in pairs:
            row.append(_mean_figure(paper, metric, name, shares, paper_name))
            row.append(number(float(paired.values(name, contender, metric, [JUDGE]).mean())))
        rows.append(row)
    header = ["data set", "I²MUFS in the paper", "paper, grid", "paper, fixed", "default, fixed"]
    for paper_name, _ in pairs:
        header += [f"{paper_name} in the paper", f"{paper_name} here"]
    return Table(
        f"{metric.upper()} beside the paper's, means over shares, GIMC_FLSD on scaled features",
        header,
        rows,
        "“Grid” figures were chosen by the labels, as all of the paper's were; “fixed” and “here” "
        "were not. " + comparability_note(),
    )


def _ablation_table(paper: PaperFigures, paired: PairedResults) -> Table:
    shares = [f"{share:g}" for share in paired.shares]
    rows = []
    for name in (n for n in paired.datasets if n in NAMES):
        row = [marked_name(name)]
        for metric in METRICS:
            row.append(_mean_figure(paper, metric, name, shares, "I2MUFS"))
            row.append(_mean_figure(paper, metric, name, shares, "C-I2MUFS"))
            for method in ("paper", "classical"):
                values = paired.values(name, Contender(method, "proportional"), metric, [JUDGE])
                row.append(number(float(values.mean())))
        rows.append(row)
    header = ["data set"]
    for metric in METRICS:
        name = metric.upper()
        header += [f"{name} I²MUFS", f"{name} C-I²MUFS"]
        header += [f"{name} paper here", f"{name} classical here"]
    return Table(
        "Ablation (Table 6): without quality weights and view weights",
        header,
        rows,
        "Means over shares; presets paper and classical with fixed parameters, GIMC_FLSD on scaled "
        "features. " + comparability_note(),
    )


def comparability_note() -> str:
    """The meaning of the mark †."""
    return f"Features of {' and '.join(RECOMPUTED)} (†) were recomputed: not comparable."


def marked_name(name: str) -> str:
    """A data set, with a mark if its features are not those of the paper."""
    return f"{name} †" if name in RECOMPUTED else name


def _figure(paper: PaperFigures, metric: str, name: str, share: str, method: str) -> float:
    key = ("F" if metric == "f" else metric.upper(), NAMES.get(name, ""), share, method)
    return paper.get(key, float("nan"))


def _mean_figure(
    paper: PaperFigures, metric: str, name: str, shares: Sequence[str], method: str
) -> str:
    return number(_mean([_figure(paper, metric, name, share, method) for share in shares]))


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")
