"""The cost of an update: the incremental speed-up, and the convergence of the objective."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.page import (
    ReportSection,
    Table,
    line_plot,
    number,
)
from stream_fs.evaluate.report.paper_figures import NAMES, comparability_note, marked_name
from stream_fs.evaluate.report.results import Comparison, PaperFigures, Results, grouped, mean_of

OTHERS = (
    "default, again",
    "paper",
    "paper, again",
    "OMVFS",
    "Laplacian score",
    "MiniBatchNMF",
    "variance",
)
"""What preset `default` is compared with."""
PAPER_METHODS: Mapping[str, str] = {"OMVFS": "OMVFS", "LapScore": "Laplacian score"}
"""The methods that are also timed in the paper, by their name there."""
SPEEDUP = "speedup"

Seconds = Mapping[tuple[str, int], Mapping[str, float]]
"""By data set and increment, the mean over repetitions by method."""


def speed_tables(rows: Sequence[Row], paper: PaperFigures) -> list[Table]:
    """Incremental speed-up, `IncS = T_other / T_I²MUFS`, of both presets."""
    seconds: Seconds = {
        (dataset, int(increment)): {
            method: mean_of(group, "seconds") for method, group in grouped(part, "method").items()
        }
        for dataset, of_dataset in grouped(rows, "dataset").items()
        for increment, part in grouped(of_dataset, "increment").items()
    }
    return [_against_default(seconds), _beside_the_paper(seconds, paper)]


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
        "Half of the data first, the rest in five chunks. Processor seconds to update the ranking "
        "with preset default, and how many times as long the others take; “again” is the same "
        "selector from the start, in chunks. Methods that do not stream process all rows again.",
    )


def _beside_the_paper(seconds: Seconds, paper: PaperFigures) -> Table:
    """Methods of the paper that are not timed here are named in the note."""
    columns = list(dict.fromkeys(key[3] for key in paper if key[0] == SPEEDUP))
    header = ["data set", "rows more", "paper, s"]
    for name in PAPER_METHODS:
        header.append(f"{name} here")
        if name in columns:
            header.append(f"{name} in the paper")
    body = []
    for (dataset, increment), took in seconds.items():
        if "paper" not in took:  # skipped on this data set
            continue
        row = [marked_name(dataset), f"{increment * 10} %", number(took["paper"])]
        for name, method in PAPER_METHODS.items():
            row.append(_ratio(took, method, "paper"))
            if name in columns:
                key = (SPEEDUP, NAMES.get(dataset, ""), f"{0.1 * increment:g}", name)
                row.append(number(paper.get(key, float("nan")), 1))
        body.append(row)
    note = (
        "IncS = T_other / T_I²MUFS with preset paper: how many times as long the others take as "
        "the printed method. "
    )
    if columns:
        missing = [name for name in columns if name not in PAPER_METHODS]
        absent = [name for name in PAPER_METHODS if name not in columns]
        note += f"Missing here, of the paper's columns: {', '.join(missing) or 'none'}. "
        note += f"Not in the paper's table: {', '.join(absent)}. " if absent else ""
    note += comparability_note()
    return Table("Incremental speed-up of preset paper (Table 5)", header, body, note)


def _ratio(took: Mapping[str, float], method: str, to: str) -> str:
    """How many times as long the method takes; a dash if it was skipped."""
    return number(took.get(method, float("nan")) / took[to], 1)


def convergence_figures(rows: Sequence[Row]) -> Table:
    """The objective of the first chunk and of the last, by iteration, relative to the first."""
    figures = []
    for preset, group in grouped(rows, "preset").items():
        for chunk, part in grouped(group, "chunk").items():
            lines = relative_objectives(part)
            points = [float(i + 1) for i in range(max(map(len, lines.values())))]
            title = f"preset {preset}, {chunk} chunk"
            figures.append(line_plot(title, "iteration", "objective / first", points, lines))
    note = "The objective of the chunk after every iteration, divided by that after the first one."
    return Table("Convergence", [], [], note, figures)


def relative_objectives(rows: Sequence[Row]) -> dict[str, list[float]]:
    """By data set, the objective of a chunk after every iteration, divided by the first one."""
    lines = {}
    for dataset, part in grouped(rows, "dataset").items():
        ordered = sorted(part, key=lambda row: int(row["iteration"]))
        values = [float(row["objective"]) for row in ordered]
        lines[dataset] = [value / values[0] for value in values]
    return lines


def tables(results: Results) -> Iterator[Table]:
    """The tables of this section."""
    if rows := results.rows_of("speed"):
        yield from speed_tables(rows, results.paper)
    if rows := results.rows_of("convergence"):
        yield convergence_figures(rows)


SECTION = ReportSection(
    "Cost of an update",
    {
        "speed": Comparison(("method",), reference=("default",)),
        "convergence": Comparison(("preset",), reference=("default",)),
    },
    tables,
)
