"""What `measure_merging` found, as a table in Markdown and as a plot."""

from collections.abc import Iterable, Sequence
from pathlib import Path

import numpy as np

from stream_fs.evaluate.errors import ExtraMissing
from stream_fs.evaluate.merging import MergingRow

COLUMNS = ("set", "cut", "P", "rows each", "method", "overlap", "NMI", "minus single")


def table(rows: Sequence[MergingRow]) -> str:
    """Means over the seeds; the NMI of every judge, their mean, and its change from one model.

    ± is one standard error of the mean change, paired by seed.
    """
    judges = sorted({judge for row in rows for judge in row.nmi})
    lines = [
        _line([*COLUMNS[:-1], *judges, COLUMNS[-1]]),
        _line(["---"] * (len(COLUMNS) + len(judges))),
    ]
    for (name, cut, partitions, method), group in _groups(rows).items():
        changes = _changes(group, rows)
        cells = [name, cut, str(partitions), str(group[0].rows), method]
        cells.append(f"{np.mean([row.overlap for row in group]):.3f}")
        cells.append(f"{np.mean([_nmi(row) for row in group]):.3f}")
        cells += [f"{np.mean([row.nmi[judge] for row in group]):.3f}" for judge in judges]
        cells.append(f"{np.mean(changes):+.3f}{_error(changes)}")
        lines.append(_line(cells))
    return "\n".join(lines)


def plot(rows: Sequence[MergingRow], path: Path) -> None:
    """Overlap and change of NMI by number of partitions, a column per set; written as an image."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ExtraMissing(
            "plots need matplotlib: install the extra with pip install 'stream-fs[evaluate]'"
        ) from error
    sets = sorted({(row.name, row.cut) for row in rows})
    figure = Figure(figsize=(3.2 * len(sets), 5.6), layout="constrained")
    axes = figure.subplots(2, len(sets), squeeze=False)
    for column, place in enumerate(sets):
        above, below = axes[0, column], axes[1, column]
        here = [row for row in rows if (row.name, row.cut) == place]
        for method in sorted({row.method for row in here} - {"single", "again"}):
            groups = {key[2]: group for key, group in _groups(here).items() if key[3] == method}
            partitions = sorted(groups)
            overlaps = [np.mean([row.overlap for row in groups[p]]) for p in partitions]
            changes = [np.mean(_changes(groups[p], rows)) for p in partitions]
            above.plot(partitions, overlaps, marker=".", label=method)
            below.plot(partitions, changes, marker=".", label=method)
        again = [row for row in here if row.method == "again"]
        above.axhline(float(np.mean([row.overlap for row in again])), color="grey", ls=":")
        below.axhline(float(np.mean(_changes(again, rows))), color="grey", ls=":")
        above.set_title(" ".join(place), fontsize=10)
        above.set_ylim(0, 1)
        below.set_xlabel("partitions")
        for axis in (above, below):
            axis.set_xscale("log", base=2)
            axis.grid(alpha=0.3)
    axes[0, 0].set_ylabel("overlap of the top 20 %")
    axes[1, 0].set_ylabel("NMI minus that of one model")
    axes[0, 0].legend(fontsize=7)
    figure.savefig(path, dpi=110, metadata={"Software": None})


def _groups(rows: Iterable[MergingRow]) -> dict[tuple[str, str, int, str], list[MergingRow]]:
    """Rows that differ only in their seed, in the order of their first appearance."""
    groups: dict[tuple[str, str, int, str], list[MergingRow]] = {}
    for row in rows:
        groups.setdefault((row.name, row.cut, row.partitions, row.method), []).append(row)
    return dict(sorted(groups.items(), key=lambda item: item[0][:3]))


def _changes(group: Sequence[MergingRow], rows: Sequence[MergingRow]) -> list[float]:
    """NMI less that of the single model with the same seed."""
    single = {(r.name, r.cut, r.seed): _nmi(r) for r in rows if r.method == "single"}
    return [_nmi(row) - single[row.name, row.cut, row.seed] for row in group]


def _nmi(row: MergingRow) -> float:
    return float(np.mean(list(row.nmi.values())))


def _error(changes: Sequence[float]) -> str:
    if len(changes) < 2:
        return ""
    return f" ± {np.std(changes, ddof=1) / np.sqrt(len(changes)):.3f}"


def _line(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
