"""Records in MessagePack, from messages and from files: in batches where possible, else one by one.

No extension types, no hooks, text keys only, and lengths are limited before memory is allocated for
them. Text that is not UTF-8 is accepted: the id is not interpreted, and no declared view has such a
name.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, BinaryIO, Final

import msgpack
import numpy as np

from stream_fs.errors import BrokenFile
from stream_fs.selector.arrays import Indices
from stream_fs.wire.declared import DeclaredView, Limits
from stream_fs.wire.records.msgpack_batch import (
    LOOKAHEAD_BYTES,
    BatchScan,
    ByteBuffer,
    FieldOrder,
    FieldOrders,
    ReusableMemory,
    ViewSegments,
)
from stream_fs.wire.records.parser import (
    DOCUMENTATION,
    FIELDS,
    REQUIRED_FIELDS,
    ParsedRecords,
    RecordError,
    parse_record,
)

_MAP_CODES: Final = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])
"""First bytes of a map."""
_LIST_CODES: Final = frozenset([*range(0x90, 0xA0), 0xDC, 0xDD])
"""First bytes of a list."""
_INVALID_CODE: Final = 0xC1

_ORDERS_PER_BLOCK: Final = 4
"""Field orders that may be learned within a block: a producer that writes without any order must
not cost a scan for every record."""

_LENGTH_ERROR: Final = re.compile(r"(?P<length>\d+) exceeds max_(?P<kind>map|array)_len\(\d+\)")
"""The parser's message on a map or a list that is longer than its limit."""

_MAX_NESTED_MAPS: Final = 3
"""The record, its views, a sparse pair."""
_UNCHECKED_BYTES: Final = 1 << 20
"""Memory that the parser may allocate for lists before the nesting is checked."""
_POINTER_BYTES: Final = 8

FILE_BLOCK_BYTES: Final = 1 << 20
"""Bytes of a file read at a time."""


def begins_like_msgpack(value: bytes) -> bool:
    """Whether a value begins like a map of MessagePack; no JSON begins with such a byte."""
    return 0x80 <= value[0] <= 0x8F or value[0] == 0xDE


class MsgpackReader:
    """Reads records in MessagePack; remembers the orders in which producers write fields."""

    def __init__(self, views: Sequence[DeclaredView], limits: Limits) -> None:
        self._views = {view.name: view for view in views}
        self._segments = [ViewSegments(view) for view in views]
        self._padding = LOOKAHEAD_BYTES + max(segments.longest for segments in self._segments)
        self._memory = ReusableMemory()
        self._orders = FieldOrders(list(self._views))
        self._parser_limits: dict[str, Any] = {
            "max_bin_len": limits.record_bytes,
            "max_str_len": limits.record_bytes,
            # A list that is slightly too long is parsed, so that the detail can name its view.
            "max_array_len": 2 * max(view.dimension for view in views) + 16,
            "max_map_len": max(limits.views, len(FIELDS)),
            "max_ext_len": 0,
        }

    def read(self, values: Sequence[bytes], lengths: Indices) -> ParsedRecords:
        """Parse these values."""
        parsed = ParsedRecords.empty(self._views)
        buffer = ByteBuffer(self._memory, values, lengths, self._padding)
        remaining = np.arange(len(values))
        for order in self._orders:
            before, remaining = len(remaining), self._scan(buffer, remaining, order, parsed)
            if len(remaining) < before:
                self._orders.move_to_front(order)
            if not remaining.size:
                return parsed
        to_learn = _ORDERS_PER_BLOCK
        while remaining.size:
            record, remaining = int(remaining[0]), remaining[1:]
            try:
                document = self._parse(values[record])
                parsed.add(record, parse_record(document, self._views))
            except RecordError as error:
                parsed.reject(record, error)
                continue
            learned = self._orders.learn(document) if to_learn else None
            if learned is not None:
                to_learn -= 1
                remaining = self._scan(buffer, remaining, learned, parsed)
        return parsed

    def _scan(
        self, buffer: ByteBuffer, records: Indices, order: FieldOrder, parsed: ParsedRecords
    ) -> Indices:
        """Scan some records in one field order; returns those that have another."""
        scan = BatchScan(buffer, records, self._segments)
        matched = scan.scan(order)
        for number, name in enumerate(self._views):
            parsed.blocks[name] += scan.row_blocks(number)
        return records[~matched]

    def _parse(self, value: bytes) -> object:
        try:
            if may_allocate_much(value, self._parser_limits["max_array_len"]):
                check_nesting(value)
            return msgpack.unpackb(
                value, strict_map_key=True, unicode_errors="surrogateescape", **self._parser_limits
            )
        except (ValueError, msgpack.UnpackException) as error:
            detail = f"not MessagePack within the limits: {self._explain(error)}"
            raise RecordError("malformed", detail) from None

    def _explain(self, error: Exception) -> str:
        """The parser's message, with limits in the terms of the configuration."""
        if isinstance(error, msgpack.ExtraData):
            return f"{len(error.extra)} bytes follow the first value"
        too_long = _LENGTH_ERROR.fullmatch(str(error))
        if too_long is None:
            return str(error) or type(error).__name__
        if too_long["kind"] == "map":
            limit = f"{self._parser_limits['max_map_len']} (limits.views)"
            return (
                f"a map of {too_long['length']} fields, more than {limit}; "
                f"{REQUIRED_FIELDS}; {DOCUMENTATION}"
            )
        widest = max(view.dimension for view in self._views.values())
        return f"a list of {too_long['length']} values; the largest view has {widest} features"


def may_allocate_much(value: bytes, max_length: int) -> bool:
    """Whether the lists of a value could take much memory, at up to `max_length` entries each."""
    lists = value.count(b"\xdc") + value.count(b"\xdd")
    return lists * min(max_length, len(value)) * _POINTER_BYTES > _UNCHECKED_BYTES


def check_nesting(value: bytes) -> None:
    """Raise ValueError where a value is nested deeper than a record; allocates nothing for it."""
    unpacker = msgpack.Unpacker(
        max_buffer_size=max(len(value), 1),
        unicode_errors="surrogateescape",
        # `unpack` accepts no list or map that has entries.
        max_array_len=0,
        max_map_len=0,
    )
    unpacker.feed(value)
    _skip_value(unpacker, value, _MAX_NESTED_MAPS)


def _skip_value(unpacker: Any, value: bytes, max_maps: int) -> None:
    code = value[unpacker.tell()] if unpacker.tell() < len(value) else _INVALID_CODE
    if code in _MAP_CODES:
        if not max_maps:
            raise ValueError("nested too deeply")
        for _ in range(unpacker.read_map_header()):
            unpacker.unpack()
            _skip_value(unpacker, value, max_maps - 1)
    elif code in _LIST_CODES:
        deque(islice(unpacker, unpacker.read_array_header()), maxlen=0)
    else:
        unpacker.unpack()


def msgpack_objects(file: BinaryIO, name: str, limit: int) -> Iterator[tuple[bytes, int]]:
    """The objects of a file, and the position after each.

    Raises `BrokenFile` with the position of bytes that are not MessagePack, or of an object of more
    than `limit` bytes: the records after it cannot be found, as nothing marks where one begins.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=limit + FILE_BLOCK_BYTES)
    pending, start = b"", 0
    while block := file.read(_bytes_to_read(len(pending), limit)):
        if start == 0 and not pending and block[0] not in _MAP_CODES:
            raise BrokenFile(
                f"{name} is not a file of records in MessagePack: its first byte begins no map"
            )
        if len(pending) > limit:
            raise BrokenFile(
                f"{name}: the record that begins at byte {start} has more than {limit} bytes"
            )
        unpacker.feed(block)
        pending += block
        first = start
        for end in _object_ends(unpacker, name, start):
            yield pending[start - first : end - first], end
            start = end
        pending = pending[start - first :]
    if pending:
        raise BrokenFile(
            f"{name} ends within the record that begins at byte {start}: it is incomplete, or "
            "still being written"
        )


def _bytes_to_read(pending: int, limit: int) -> int:
    """As many as are pending, so that a long record is scanned only a few times."""
    wanted = max(FILE_BLOCK_BYTES, pending)
    return min(wanted, limit + FILE_BLOCK_BYTES - pending) or FILE_BLOCK_BYTES


def _object_ends(unpacker: msgpack.Unpacker, name: str, start: int) -> Iterator[int]:
    """The positions after the complete objects."""
    while True:
        try:
            unpacker.skip()
        except msgpack.OutOfData:
            return
        except (msgpack.UnpackException, ValueError) as error:
            raise BrokenFile(
                f"{name}: the object that begins at byte {start} is not MessagePack "
                f"({type(error).__name__}), and the records after it cannot be found: cut the "
                "file there, or write it anew"
            ) from error
        start = int(unpacker.tell())
        yield start
