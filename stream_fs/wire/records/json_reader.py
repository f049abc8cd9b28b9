"""Records in JSON: parsed one by one. Strict: NaN and infinity are no JSON.

Encoders such as Python's `json.dumps` write them all the same. A value that is not JSON is parsed a
second time, by a parser that knows them, to find which view has one: `not_finite` in place of
`malformed`. The second parse never makes a record good.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

import orjson

from stream_fs.selector.arrays import Indices
from stream_fs.wire.declared import DeclaredView, Format
from stream_fs.wire.records.collector import row_fault
from stream_fs.wire.records.parser import ParsedRecords, RecordError, parse_record

_BYTE_ORDER_MARK: Final = b"\xef\xbb\xbf"
_FRAME_BYTES: Final = 5
"""A zero and four bytes of a schema's id: serializers of schema registries begin with them."""


def resemblance(value: bytes, declared: Format) -> str:
    """A clause for the detail of a value that cannot be parsed; empty if it resembles nothing."""
    if not value:
        return "; the value is empty"
    if value[0] == 0 and len(value) >= _FRAME_BYTES:
        return "; it begins like a schema registry's framing (Avro, Protobuf), which is not read"
    if _like_json(value) if declared == "msgpack" else _like_msgpack(value):
        other = "JSON" if declared == "msgpack" else "MessagePack"
        return f"; it begins like {other}, see stream.format"
    return ""


def _like_json(value: bytes) -> bool:
    return value.removeprefix(_BYTE_ORDER_MARK).lstrip()[:1] in (b"{", b"[")


def _like_msgpack(value: bytes) -> bool:
    """Whether it begins like a map; no JSON begins with such a byte."""
    return 0x80 <= value[0] <= 0x8F or value[0] == 0xDE


_MOST_CONTAINERS: Final = 800
"""Maps and lists in a value that is parsed twice: 256 views of sparse pairs have fewer.

So the depth stays below Python's recursion limit, and the verdict depends on the value alone.
"""


class JsonReader:
    """Reads records in JSON."""

    def __init__(self, views: Sequence[DeclaredView]) -> None:
        self._views = {view.name: view for view in views}

    def read(self, values: Sequence[bytes], _: Indices) -> ParsedRecords:
        """What is in these values."""
        found = ParsedRecords.nothing(self._views)
        for record, value in enumerate(values):
            truths = b"true" in value or b"false" in value
            try:
                found.add(record, parse_record(self._parse(value), self._views, truths=truths))
            except RecordError as refused:
                found.refuse(record, refused)
        return found

    def _parse(self, value: bytes) -> object:
        try:
            return orjson.loads(value)
        except orjson.JSONDecodeError as error:
            self._refuse_not_finite(value)
            detail = f"not JSON: {error}{resemblance(value, 'json')}"
            raise RecordError("malformed", detail) from None

    def _refuse_not_finite(self, value: bytes) -> None:
        """Raise `RecordError` for a value that is a record except for NaN or infinity."""
        if value.count(b"[") + value.count(b"{") > _MOST_CONTAINERS:
            return
        try:
            rows = parse_record(json.loads(value.decode()), self._views)
        except (ValueError, OverflowError):
            return
        for name, view in self._views.items():
            fault = row_fault(view, rows[name]) if name in rows else None
            if fault is not None:
                raise RecordError(*fault)
