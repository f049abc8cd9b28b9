"""Measured rows on disk, so that a run can be stopped and go on.

One JSON line per finished task in ``rows.jsonl``. A line without its end was cut off when the run
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
from stream_fs.evaluate.plan import Row, Task

ROWS = "rows.jsonl"
ABOUT = "about.json"


class Store:
    """The output directory."""

    def __init__(self, directory: Path) -> None:
        """Open the directory, which is made where it is not there."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._rows = self._resume(directory / ROWS)

    def __contains__(self, task: Task) -> bool:
        return task.key in self._rows

    def add(self, task: Task, rows: Sequence[Row]) -> None:
        """Write the rows of a finished task."""
        named: list[Row] = [{"dataset": task.dataset, **task.settings, **row} for row in rows]
        line = {"key": task.key, "experiment": task.experiment, "rows": named}
        with (self.directory / ROWS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
        self._rows[task.key] = named

    def rows(self, tasks: Sequence[Task], experiment: str) -> list[Row]:
        """What was measured for the experiment's tasks, in their order."""
        mine = (task.key for task in tasks if task.experiment == experiment)
        return [row for key in mine for row in self._rows.get(key, [])]

    def write_csv(self, tasks: Sequence[Task], experiment: str) -> Path | None:
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

    @staticmethod
    def _resume(path: Path) -> dict[str, list[Row]]:
        if not path.exists():
            return {}
        content = path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        if complete != content:
            path.write_bytes(complete)
        rows: dict[str, list[Row]] = {}
        for number, line in enumerate(complete.decode().splitlines(), 1):
            try:
                read = json.loads(line)
                rows[read["key"]] = read["rows"]
            except (ValueError, KeyError, TypeError) as error:
                raise DataMalformed(
                    f"{path}, line {number} is not a result: remove the line, or name another "
                    "directory with --output"
                ) from error
        return rows
