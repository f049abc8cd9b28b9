"""Measured rows on disk, so that a run can be stopped and go on.

One JSON line per finished task in ``rows.jsonl``; that of a method that refused the data set has no
rows, but the reason. A line without its end was cut off when the run
was stopped: it is removed, and its task is measured again. Rows under keys that no plan asks for
any more stay, and nobody reads them.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stream_fs.evaluate.errors import DataMalformed
from stream_fs.evaluate.plan import Measurement, Refused, Row

ROWS = "rows.jsonl"
ABOUT = "about.json"


class Store:
    """The output directory."""

    def __init__(self, directory: Path) -> None:
        """Open the directory, which is made where it is not there."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._rows: dict[str, list[Row]] = {}
        self._refused: dict[str, str] = {}
        self._resume(directory / ROWS)

    def __contains__(self, task: Measurement) -> bool:
        return task.key in self._rows

    def add(self, task: Measurement, rows: Sequence[Row]) -> None:
        """Write the rows of a finished task."""
        named: list[Row] = [{"dataset": task.dataset, **task.settings, **row} for row in rows]
        self._append({"key": task.key, "experiment": task.experiment, "rows": named})
        self._rows[task.key] = named

    def refuse(self, task: Measurement, reason: str) -> None:
        """Note that the task's method cannot take its data set, and why."""
        self._append(
            {"key": task.key, "experiment": task.experiment, "rows": [], "refused": reason}
        )
        self._rows[task.key] = []
        self._refused[task.key] = reason

    def refused(self, tasks: Sequence[Measurement]) -> list[Refused]:
        """Those of the tasks whose method cannot take their data set, in their order."""
        return [
            Refused(task, self._refused[task.key]) for task in tasks if task.key in self._refused
        ]

    def _append(self, line: dict[str, Any]) -> None:
        with (self.directory / ROWS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")

    def rows(self, tasks: Sequence[Measurement], experiment: str) -> list[Row]:
        """What was measured for the experiment's tasks, in their order."""
        mine = (task.key for task in tasks if task.experiment == experiment)
        return [row for key in mine for row in self._rows.get(key, [])]

    def write_csv(self, tasks: Sequence[Measurement], experiment: str) -> Path | None:
        """The experiment's rows as ``EXPERIMENT.csv``; nothing where there are none."""
        rows = self.rows(tasks, experiment)
        if not rows:
            return None
        columns = list(dict.fromkeys(name for row in rows for name in row))
        path = self.directory / f"{experiment}.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            writer = csv.DictWriter(file, columns, restval="")
            writer.writeheader()
            writer.writerows(rows)
        return path

    def write_about(self, about: dict[str, Any]) -> None:
        """What the run was asked for: data sets and options."""
        text = json.dumps(about, indent=1, ensure_ascii=False)
        (self.directory / ABOUT).write_text(text + "\n", encoding="utf-8")

    def _resume(self, path: Path) -> None:
        if not path.exists():
            return
        content = path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        if complete != content:
            path.write_bytes(complete)
        for number, line in enumerate(complete.decode().splitlines(), 1):
            try:
                read = json.loads(line)
                self._rows[read["key"]] = read["rows"]
                if "refused" in read:
                    self._refused[read["key"]] = str(read["refused"])
            except (ValueError, KeyError, TypeError) as error:
                raise DataMalformed(
                    f"{path}, line {number} is not a result: remove the line, or name another "
                    "directory with --output"
                ) from error
