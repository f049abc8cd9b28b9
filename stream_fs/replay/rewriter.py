"""Records written anew: in another format, or with views left out on purpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stream_fs.errors import InvalidParameter
from stream_fs.wire import FORMATS, DeclaredView, RecordFormat


class Rewriter:
    """Takes records in one format, gives them in another, each view missing with a probability.

    At least one view is kept. Records that are as they should be, and values that are no records,
    come out as they went in: byte for byte.
    """

    def __init__(
        self,
        declared: Sequence[DeclaredView],
        read: RecordFormat,
        written: RecordFormat,
        *,
        missing: float = 0.0,
        seed: int = 0,
    ) -> None:
        if not 0 <= missing < 1:
            raise InvalidParameter(f"the share of missing views is in [0, 1), not {missing:g}")
        self._declared = {view.name: view for view in declared}
        self._read, self._written = read, written
        self._missing = missing
        self._rng = np.random.default_rng(seed)

    def __call__(self, value: bytes) -> bytes:
        """The record written anew."""
        if self._read == self._written and not self._missing:
            return value
        record = _parsed(value, self._read)
        views = record.get("views") if isinstance(record, dict) else None
        if record is None or not isinstance(views, dict):
            return value
        present = [name for name, given in views.items() if given is not None]
        gone = self._gone(present)
        if not gone and self._read == self._written:
            return value
        record["views"] = {name: given for name, given in views.items() if name not in gone}
        try:
            if not FORMATS[self._written].has_bytes:
                record["views"] = {
                    name: self._unpacked(name, given) for name, given in record["views"].items()
                }
            return FORMATS[self._written].encode(record)
        except (KeyError, ValueError, TypeError):  # what the other cannot say is no record of ours
            return value

    def _gone(self, present: Sequence[str]) -> set[str]:
        """The views to leave out; one is kept, any with the same probability."""
        if not self._missing or not present:
            return set()
        drawn = self._rng.random(len(present)) < self._missing
        if drawn.all():
            drawn[self._rng.integers(len(present))] = False
        return {name for name, left_out in zip(present, drawn, strict=True) if left_out}

    def _unpacked(self, name: str, given: Any) -> Any:
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
    """The plain data of a record; None where it is not of the format."""
    try:
        return FORMATS[format].parse(value)
    except ValueError:
        return None
