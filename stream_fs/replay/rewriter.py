"""Conversion of records: into another format, or with some views removed at random."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stream_fs.errors import InvalidParameter
from stream_fs.wire import FORMATS, DeclaredView, RecordFormat


class Rewriter:
    """Converts records to another format, and removes each view with a probability.

    At least one view is kept. Records that need no change, and values that are not records, are
    returned unchanged, byte for byte.
    """

    def __init__(
        self,
        declared: Sequence[DeclaredView],
        read: RecordFormat,
        write: RecordFormat,
        *,
        missing: float = 0.0,
        seed: int = 0,
    ) -> None:
        if not 0 <= missing < 1:
            raise InvalidParameter(f"the share of missing views is in [0, 1), not {missing:g}")
        self._declared = {view.name: view for view in declared}
        self._read, self._write = read, write
        self._missing = missing
        self._rng = np.random.default_rng(seed)

    def __call__(self, value: bytes) -> bytes:
        """The converted record."""
        if self._read == self._write and not self._missing:
            return value
        record = _parsed(value, self._read)
        views = record.get("views") if isinstance(record, dict) else None
        if record is None or not isinstance(views, dict):
            return value
        present = [name for name, given in views.items() if given is not None]
        removed = self._removed(present)
        if not removed and self._read == self._write:
            return value
        record["views"] = {name: given for name, given in views.items() if name not in removed}
        try:
            if not FORMATS[self._write].has_bytes:
                record["views"] = {
                    name: self._as_lists(name, given) for name, given in record["views"].items()
                }
            return FORMATS[self._write].encode(record)
        except (KeyError, ValueError, TypeError):  # the other format cannot express it
            return value

    def _removed(self, present: Sequence[str]) -> set[str]:
        """The views to remove; all but one, drawn uniformly, where all were drawn."""
        if not self._missing or not present:
            return set()
        drawn = self._rng.random(len(present)) < self._missing
        if drawn.all():
            drawn[self._rng.integers(len(present))] = False
        return {name for name, removed in zip(present, drawn, strict=True) if removed}

    def _as_lists(self, name: str, given: Any) -> Any:
        """The values of a view in a format without bytes."""
        if isinstance(given, bytes):
            return np.frombuffer(given, self._declared[name].floats).tolist()
        if isinstance(given, dict):
            sparse = dict(given)
            if isinstance(indices := sparse.get("i"), bytes):
                sparse["i"] = np.frombuffer(indices, "<u4").tolist()
            if isinstance(values := sparse.get("x"), bytes):
                sparse["x"] = np.frombuffer(values, self._declared[name].floats).tolist()
            return sparse
        return given


def _parsed(value: bytes, format: RecordFormat) -> Any:
    """The content of a record; None where it is not of the format."""
    try:
        return FORMATS[format].parse(value)
    except ValueError:
        return None
