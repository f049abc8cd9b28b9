"""Records in JSON, from messages and from files of lines. Strict: JSON has no NaN or infinity.

Encoders such as Python's `json.dumps` write them nevertheless. A value that is not JSON is parsed a
second time, by a parser that accepts them, to find the view that contains one: `not_finite` instead
of `malformed`. The second parse never makes a record good.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import BinaryIO, Final

import orjson

from stream_fs.errors import BrokenFile
from stream_fs.selector.arrays import Indices
from stream_fs.wire.declared import DeclaredView
from stream_fs.wire.records.collector import row_fault
from stream_fs.wire.records.parser import ParsedRecords, RecordError, parse_record

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"

_MAX_CONTAINERS: Final = 800
"""Maps and lists in a value that is parsed twice: 256 views of sparse pairs have fewer.

This keeps the depth below Python's recursion limit, and the result depends on the value alone.
"""


def begins_like_json(value: bytes) -> bool:
    """Whether a value begins like a JSON object or array."""
    return value.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


class JsonReader:
    """Reads records in JSON, one by one."""

    def __init__(self, views: Sequence[DeclaredView]) -> None:
        self._views = {view.name: view for view in views}

    def read(self, values: Sequence[bytes], _: Indices) -> ParsedRecords:
        """Parse these values."""
        parsed = ParsedRecords.empty(self._views)
        for record, value in enumerate(values):
            booleans = b"true" in value or b"false" in value
            try:
                rows = parse_record(self._parse(value), self._views, booleans=booleans)
                parsed.add(record, rows)
            except RecordError as error:
                parsed.reject(record, error)
        return parsed

    def _parse(self, value: bytes) -> object:
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError as error:
            self._reject_not_finite(value)
            raise RecordError("malformed", f"not JSON: {error}") from None

    def _reject_not_finite(self, value: bytes) -> None:
        """Raise `RecordError` for a value that is a record except for NaN or infinity."""
        if value.count(b"[") + value.count(b"{") > _MAX_CONTAINERS:
            return
        try:
            rows = parse_record(json.loads(value.decode()), self._views)
        except (ValueError, OverflowError):
            return
        for name, view in self._views.items():
            fault = row_fault(view, rows[name]) if name in rows else None
            if fault is not None:
                raise RecordError(*fault)


def json_lines(file: BinaryIO, name: str, limit: int) -> Iterator[tuple[bytes, int]]:
    """The lines of a file without their ends, and the position after each; skips empty lines.

    Raises `BrokenFile` for a line of more than `limit` bytes.
    """
    position = 0
    while line := file.readline(limit + 1):
        if len(line) > limit:
            raise BrokenFile(
                f"{name}: the line that begins at byte {position} has more than {limit} "
                "bytes: is this a file of JSON lines, one record in each?"
            )
        position += len(line)
        value = line.removesuffix(b"\n").removesuffix(b"\r")
        if value.strip():
            yield value, position
