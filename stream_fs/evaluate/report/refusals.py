"""Methods that could not be run on a data set, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from stream_fs.evaluate.plan import Refused
from stream_fs.evaluate.report.tables import Table


def refused_methods(refused: Sequence[Refused]) -> dict[str, set[str]]:
    """By data set, the methods of the main comparison that refused it in any repetition."""
    found: dict[str, set[str]] = {}
    for of in refused:
        if of.task.experiment == "ranking":
            found.setdefault(of.task.dataset, set()).add(of.task.what)
    return found


def refused_table(refused: Sequence[Refused]) -> Table:
    """A row for every data set and method; of the reasons the first."""
    rows = [
        [
            dataset,
            what,
            ", ".join(dict.fromkeys(of.task.experiment for of in group)),
            group[0].reason,
        ]
        for (dataset, what), group in _groups(refused).items()
    ]
    return Table(
        "What could not be run",
        ["data set", "method or setting", "experiments", "why"],
        rows,
        "A method that refuses a data set has a dash (–) in tables by data set, and where a mean "
        "would include that set. The tables on stability, missing instances and the judge leave "
        "such a data set out.",
    )


def refused_in_words(refused: Sequence[Refused]) -> Iterator[str]:
    """A sentence for every data set."""
    by_set: dict[str, list[str]] = {}
    for dataset, what in _groups(refused):
        by_set.setdefault(dataset, []).append(what)
    for dataset, which in by_set.items():
        yield f"Could not be run on {dataset} (see What was measured): {'; '.join(which)}."


def _groups(refused: Sequence[Refused]) -> dict[tuple[str, str], list[Refused]]:
    """By data set and method; the settings of one parameter grid are one."""
    found: dict[tuple[str, str], list[Refused]] = {}
    for of in refused:
        grid = "parameter" in of.task.settings
        what = f"settings of {of.task.experiment}" if grid else of.task.what
        found.setdefault((of.task.dataset, what), []).append(of)
    return found
