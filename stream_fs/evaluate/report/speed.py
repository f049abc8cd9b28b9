"""What an update costs: the incremental speed-up, and how the objective falls."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.plots import curves
from stream_fs.evaluate.report.published import NAMES, Published, comparable_note, named
from stream_fs.evaluate.report.rows import grouped
from stream_fs.evaluate.report.tables import Table, number

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
