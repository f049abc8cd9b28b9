"""Results on disk, so that an interrupted run can be continued.

``rows.jsonl`` has one JSON line per finished measurement: its rows or, where the method cannot
process the data set, the reason. An incomplete last line, which an interrupted run leaves, is
removed, and its measurement is repeated. Lines with keys that are in no current plan are kept and
ignored.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from stream_fs.evaluate.errors import DataMalformed
from stream_fs.evaluate.plan import Measurement, Row, SkippedMeasurement

ROWS = "rows.jsonl"
ABOUT = "about.json"


class ResultStore:
    """The output directory."""

    def __init__(self, directory: Path) -> None:
        """Open the directory, and create it if necessary."""
        self.directory = directory
        directory.mkdir(parents=True, exist_ok=True)
        self._rows: dict[str, list[Row]] = {}
        self._skipped: dict[str, str] = {}
        self._read(directory / ROWS)

    def __contains__(self, measurement: Measurement) -> bool:
        return measurement.key in self._rows

    def add(self, measurement: Measurement, rows: Sequence[Row]) -> None:
        """Write the rows of a measurement."""
        place = {"dataset": measurement.dataset, **measurement.settings}
        complete: list[Row] = [{**place, **row} for row in rows]
        self._append(measurement, complete)
        self._rows[measurement.key] = complete

    def skip(self, measurement: Measurement, reason: str) -> None:
        """Record that the measurement's method cannot process its data set."""
        self._append(measurement, [], skipped=reason)
        self._rows[measurement.key] = []
        self._skipped[measurement.key] = reason

    def skipped(self, plan: Sequence[Measurement]) -> list[SkippedMeasurement]:
        """The measurements of the plan that were skipped, in its order."""
        return [
            SkippedMeasurement(measurement, self._skipped[measurement.key])
            for measurement in plan
            if measurement.key in self._skipped
        ]

    def _append(self, measurement: Measurement, rows: list[Row], **fields: str) -> None:
        line = {"key": measurement.key, "experiment": measurement.experiment, "rows": rows}
        with (self.directory / ROWS).open("a", encoding="utf-8") as file:
            file.write(json.dumps(line | fields) + "\n")

    def rows(self, plan: Sequence[Measurement], experiment: str) -> list[Row]:
        """The rows of an experiment, in the order of the plan."""
        keys = (measurement.key for measurement in plan if measurement.experiment == experiment)
        return [row for key in keys for row in self._rows.get(key, [])]

    def write_csv(self, plan: Sequence[Measurement], experiment: str) -> Path | None:
        """Write the experiment's rows as ``EXPERIMENT.csv``, unless there are none."""
        rows = self.rows(plan, experiment)
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
        """Write the data sets and options of the run."""
        text = json.dumps(about, indent=1, ensure_ascii=False)
        (self.directory / ABOUT).write_text(text + "\n", encoding="utf-8")

    def _read(self, path: Path) -> None:
        if not path.exists():
            return
        content = path.read_bytes()
        complete = content[: content.rfind(b"\n") + 1]
        if complete != content:
            path.write_bytes(complete)
        for number, line in enumerate(complete.decode().splitlines(), 1):
            try:
                fields = json.loads(line)
                self._rows[fields["key"]] = fields["rows"]
                if "skipped" in fields:
                    self._skipped[fields["key"]] = str(fields["skipped"])
            except (ValueError, KeyError, TypeError) as error:
                raise DataMalformed(
                    f"{path}, line {number} is not a result: remove the line, or name another "
                    "directory with --output"
                ) from error
