"""What merging partitions costs, as a table and two figures."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.plots import curves
from stream_fs.evaluate.report.tables import Table, number, with_error
from stream_fs.evaluate.statistics import estimate

MADE = "made, long"
"""What the stream that is made is called here."""
HEADER = ["data set", "cut", "partitions", "rows each", "ranking", "overlap", "NMI", "less single"]
NOTE = (
    "Top 20 % of the features, NMI of both judges on raw and scaled features. “single” is one "
    "model of all rows, “again” one model of the same rows in another order: no overlap can be "
    "expected to exceed its. “merged” is what the service publishes; “matched” aligns clusters "
    "by one permutation per model, “averaged” averages relevance. ± is the standard error over "
    "repetitions, paired. Partitions have at least 40 rows per cluster."
)


def merging_table(rows: Sequence[Row]) -> list[Table]:
    """Overlap with the choice of one model, and change of NMI, by number of partitions."""
    single = {_problem(row): float(row["nmi"]) for row in rows if row["method"] == "single"}
    body: list[list[str]] = []
    overlaps: dict[str, list[float]] = {}
    changes: dict[str, list[float]] = {}
    for (name, cut, partitions, method), of in sorted(_groups(rows).items(), key=_place):
        change = estimate([float(row["nmi"]) - single[_problem(row)] for row in of])
        overlap = estimate([float(row["overlap"]) for row in of])
        nmi = float(np.mean([float(row["nmi"]) for row in of]))
        cells = [name, cut, str(partitions), str(of[0]["rows"]), method]
        body.append([*cells, with_error(overlap), number(nmi), with_error(change, difference=True)])
        if method == "merged" and cut == "even":
            overlaps.setdefault(name, []).append(overlap.mean)
            changes.setdefault(name, []).append(change.mean)
    points = sorted({float(row["partitions"]) for row in rows if row["method"] == "merged"})
    figures = list(_figures(points, overlaps, changes))
    return [Table("Merged partitions", HEADER, body, NOTE, figures)]


def _figures(
    points: Sequence[float],
    overlaps: Mapping[str, Sequence[float]],
    changes: Mapping[str, Sequence[float]],
) -> Iterator[str]:
    """Partitions grow by the same steps everywhere, so that lines share their points."""
    for title, lines in (
        ("Overlap with the top 20 % of one model", overlaps),
        ("NMI less that of one model", changes),
    ):
        yield curves(title, "partitions", title.split()[0], points, lines, logarithmic=True)


def _groups(rows: Sequence[Row]) -> dict[tuple[str, str, int, str], list[Row]]:
    """Rows that differ only in their repetition."""
    groups: dict[tuple[str, str, int, str], list[Row]] = {}
    for row in rows:
        name = str(row["dataset"]) or MADE
        key = (name, str(row["cut"]), int(row["partitions"]), str(row["method"]))
        groups.setdefault(key, []).append(row)
    return groups


def _place(item: tuple[tuple[str, str, int, str], list[Row]]) -> tuple[str, str, int, bool]:
    """By data set, cut and number; what merges nothing comes first."""
    name, cut, partitions, method = item[0]
    return name, cut, partitions, method != "single"


def _problem(row: Row) -> tuple[str, str, str]:
    return str(row["dataset"]), str(row["cut"]), str(row["repetition"])
