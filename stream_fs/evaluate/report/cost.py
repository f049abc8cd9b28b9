"""What an update costs: the incremental speed-up, and how the objective falls."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.page import Table, curves, number, with_error
from stream_fs.evaluate.report.paper_figures import NAMES, Published, comparable_note, named
from stream_fs.evaluate.report.results import estimate, grouped

OTHERS = (
    "default, again",
    "paper",
    "paper, again",
    "OMVFS",
    "Laplacian score",
    "MiniBatchNMF",
    "variance",
)
"""What preset `default` is timed against."""
THEIRS: Mapping[str, str] = {"OMVFS": "OMVFS", "LapScore": "Laplacian score"}
"""The paper's name → ours, of the methods that both time."""
SPEEDUP = "speedup"

Seconds = Mapping[tuple[str, int], Mapping[str, float]]
"""Data set and increment → method → mean over repetitions."""


def speed_tables(rows: Sequence[Row], published: Published) -> list[Table]:
    """Incremental speed-up, `IncS = T_other / T_I²MUFS`, of both presets."""
    seconds: Seconds = {
        (dataset, int(increment)): {
            method: float(np.mean([float(row["seconds"]) for row in group]))
            for method, group in grouped(part, "method").items()
        }
        for dataset, of in grouped(rows, "dataset").items()
        for increment, part in grouped(of, "increment").items()
    }
    return [_against_default(seconds), _beside_the_paper(seconds, published)]


def _against_default(seconds: Seconds) -> Table:
    return Table(
        "Incremental speed-up of preset default",
        ["data set", "rows more", "default, s", *OTHERS],
        [
            [
                dataset,
                f"{increment * 10} %",
                number(took["default"]),
                *(_ratio(took, name, "default") for name in OTHERS),
            ]
            for (dataset, increment), took in seconds.items()
        ],
        "Half of the data first, the rest in five chunks. Processor seconds to bring the "
        "ranking up to date with preset default, and how many times as long the others take; "
        "“again” is the same selector from the start, in chunks. Methods that do not stream "
        "start again.",
    )


def _beside_the_paper(seconds: Seconds, published: Published) -> Table:
    """Columns are shown where the paper has them; its others are named as missing."""
    columns = list(dict.fromkeys(key[3] for key in published if key[0] == SPEEDUP))
    header = ["data set", "rows more", "paper, s"]
    for theirs in THEIRS:
        header.append(f"{theirs} here")
        if theirs in columns:
            header.append(f"{theirs} in the paper")
    body = []
    for (dataset, increment), took in seconds.items():
        if "paper" not in took:  # it refused the data set
            continue
        row = [named(dataset), f"{increment * 10} %", number(took["paper"])]
        for theirs, ours in THEIRS.items():
            row.append(_ratio(took, ours, "paper"))
            if theirs in columns:
                key = (SPEEDUP, NAMES.get(dataset, ""), f"{0.1 * increment:g}", theirs)
                row.append(number(published.get(key, float("nan")), 1))
        body.append(row)
    note = (
        "IncS = T_other / T_I²MUFS with preset paper: how many times as long the others take as "
        "the printed method. "
    )
    if columns:
        missing = [name for name in columns if name not in THEIRS]
        absent = [name for name in THEIRS if name not in columns]
        note += f"Missing here, of the paper's columns: {', '.join(missing) or 'none'}. "
        note += f"Not in the paper's table: {', '.join(absent)}. " if absent else ""
    note += comparable_note()
    return Table("Incremental speed-up of preset paper (Table 5)", header, body, note)


def _ratio(took: Mapping[str, float], method: str, to: str) -> str:
    """How many times as long the method takes; a dash where it refused the data set."""
    return number(took.get(method, float("nan")) / took[to], 1)


def convergence_figures(rows: Sequence[Row]) -> Table:
    """The objective by iteration, relative to the first, of the first chunk and of the last."""
    figures = []
    for preset, of in grouped(rows, "preset").items():
        for chunk, part in grouped(of, "chunk").items():
            lines = relative_objectives(part)
            points = [float(i + 1) for i in range(max(map(len, lines.values())))]
            title = f"preset {preset}, {chunk} chunk"
            figures.append(curves(title, "iteration", "objective / first", points, lines))
    note = "The chunk's objective, iteration by iteration, divided by that after the first one."
    return Table("Convergence", [], [], note, figures)


def relative_objectives(rows: Sequence[Row]) -> dict[str, list[float]]:
    """By data set, the objective of one chunk after every iteration, the first being 1."""
    lines = {}
    for dataset, part in grouped(rows, "dataset").items():
        ordered = sorted(part, key=lambda row: int(row["iteration"]))
        values = [float(row["objective"]) for row in ordered]
        lines[dataset] = [value / values[0] for value in values]
    return lines


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
