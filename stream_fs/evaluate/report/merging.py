"""Merged partitions: overlap with one model, and change of NMI, by number of partitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.page import ReportSection, Table, line_plot, number, with_error
from stream_fs.evaluate.report.results import Results, estimate, mean_of

GENERATED = "generated, long"
"""Name of the generated stream."""
HEADER = ["data set", "cut", "partitions", "rows each", "ranking", "overlap", "NMI", "less single"]
NOTE = (
    "Top 20 % of the features, NMI of both judges on raw and scaled features. “single” is one "
    "model of all rows, “again” one model of the same rows in another order, whose overlap is the "
    "most that can be expected. “merged” is what the service publishes; “matched” aligns clusters "
    "by one permutation per model, “averaged” averages relevance. ± is the standard error over "
    "repetitions, paired. Partitions have at least 40 rows per cluster."
)


def tables(results: Results) -> Iterator[Table]:
    """The table of this section."""
    if rows := [*results.rows_of("merging"), *results.rows_of("merging-long")]:
        yield merging_table(rows)


def merging_table(rows: Sequence[Row]) -> Table:
    """A row per data set, partitioning, number of partitions and method."""
    single = {_trial(row): float(row["nmi"]) for row in rows if row["method"] == "single"}
    body: list[list[str]] = []
    overlaps: dict[str, list[float]] = {}
    changes: dict[str, list[float]] = {}
    for (name, cut, partitions, method), group in sorted(_groups(rows).items(), key=_position):
        change = estimate([float(row["nmi"]) - single[_trial(row)] for row in group])
        overlap = estimate([float(row["overlap"]) for row in group])
        body.append(
            [
                *(name, cut, str(partitions), str(group[0]["rows"]), method),
                with_error(overlap),
                number(mean_of(group, "nmi")),
                with_error(change, difference=True),
            ]
        )
        if method == "merged" and cut == "even":
            overlaps.setdefault(name, []).append(overlap.mean)
            changes.setdefault(name, []).append(change.mean)
    points = sorted({float(row["partitions"]) for row in rows if row["method"] == "merged"})
    return Table("Merged partitions", HEADER, body, NOTE, list(_figures(points, overlaps, changes)))


def _figures(
    points: Sequence[float],
    overlaps: Mapping[str, Sequence[float]],
    changes: Mapping[str, Sequence[float]],
) -> Iterator[str]:
    """Lines share their points, because all numbers of partitions are from the same series."""
    for title, lines in (
        ("Overlap with the top 20 % of one model", overlaps),
        ("NMI less that of one model", changes),
    ):
        yield line_plot(title, "partitions", title.split()[0], points, lines, logarithmic=True)


def _groups(rows: Sequence[Row]) -> dict[tuple[str, str, int, str], list[Row]]:
    """Rows that differ only in their repetition."""
    groups: dict[tuple[str, str, int, str], list[Row]] = {}
    for row in rows:
        name = str(row["dataset"]) or GENERATED
        key = (name, str(row["cut"]), int(row["partitions"]), str(row["method"]))
        groups.setdefault(key, []).append(row)
    return groups


def _position(item: tuple[tuple[str, str, int, str], list[Row]]) -> tuple[str, str, int, bool]:
    """By data set, partitioning and number of partitions; `single` comes first."""
    name, cut, partitions, method = item[0]
    return name, cut, partitions, method != "single"


def _trial(row: Row) -> tuple[str, str, str]:
    return str(row["dataset"]), str(row["cut"]), str(row["repetition"])


SECTION = ReportSection("Merging partitions", {}, tables)
