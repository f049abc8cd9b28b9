"""Records in MessagePack: together as far as possible, the others one by one, within bounds.

No extension types, no hooks, text keys only, and lengths limited before anything is reserved for
them. Text that is not UTF-8 passes: the id is nobody's business here, and no declared view has
such a name.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Sequence
from itertools import islice
from typing import Any, Final

import msgpack
import numpy as np

from stream_fs.selector.arrays import Indices
from stream_fs.wire.declared import DeclaredView, Limits
from stream_fs.wire.records.json_reader import resemblance
from stream_fs.wire.records.msgpack_batch import (
    ROOM,
    BatchScan,
    ByteBuffer,
    FieldOrders,
    Memory,
    Order,
    Segments,
)
from stream_fs.wire.records.parser import (
    DESCRIBED,
    FIELDS,
    NEEDED,
    ParsedRecords,
    RecordError,
    parse_record,
)

MAPS: Final = 3
"""Maps in maps: the record, its views, a sparse pair."""
FREE_BYTES: Final = 1 << 20
"""So much may be reserved without a closer look."""

_POINTER_BYTES: Final = 8
_NOTHING: Final[dict[str, Any]] = {"max_array_len": 0, "max_map_len": 0}


def may_reserve_much(value: bytes, longest: int) -> bool:
    """Whether lists of at most so many entries could add up; short ones cannot."""
    lists = value.count(b"\xdc") + value.count(b"\xdd")
    return lists * min(longest, len(value)) * _POINTER_BYTES > FREE_BYTES


def check_nesting(value: bytes) -> None:
    """Go through a value without keeping anything; a ValueError where it is nested too deeply."""
    unpacker = msgpack.Unpacker(
        max_buffer_size=max(len(value), 1), unicode_errors="surrogateescape", **_NOTHING
    )
    unpacker.feed(value)
    _go_through(unpacker, value, MAPS)


def _go_through(unpacker: Any, value: bytes, maps: int) -> None:
    code = value[unpacker.tell()] if unpacker.tell() < len(value) else 0xC1
    if 0x80 <= code <= 0x8F or code in (0xDE, 0xDF):
        if not maps:
            raise ValueError("nested too deeply")
        for _ in range(unpacker.read_map_header()):
            unpacker.unpack()
            _go_through(unpacker, value, maps - 1)
    elif 0x90 <= code <= 0x9F or code in (0xDC, 0xDD):
        # The unpacker takes no list or map that has anything in it.
        deque(islice(unpacker, unpacker.read_array_header()), maxlen=0)
    else:
        unpacker.unpack()


_LESSONS: Final = 4
"""Orders that may be learned within one block: a producer without any order must not cost a walk
for every record."""

_EXCEEDED: Final = re.compile(r"(?P<length>\d+) exceeds max_(?P<kind>map|array)_len\(\d+\)")
"""The parser's message on a map or a list that is longer than its bounds."""


class MsgpackReader:
    """Reads records in MessagePack; remembers the orders in which they are written."""

    def __init__(self, views: Sequence[DeclaredView], limits: Limits) -> None:
        self._views = {view.name: view for view in views}
        self._segments = [Segments(view) for view in views]
        self._room = ROOM + max(part.longest for part in self._segments)
        self._memory = Memory()
        self._orders = FieldOrders(list(self._views))
        self._bounds: dict[str, Any] = {
            "max_bin_len": limits.record_bytes,
            "max_str_len": limits.record_bytes,
            # What is a little too long is parsed, so that it is told apart from nonsense.
            "max_array_len": 2 * max(view.dimension for view in views) + 16,
            "max_map_len": max(limits.views, len(FIELDS)),
            "max_ext_len": 0,
        }

    def read(self, values: Sequence[bytes], lengths: Indices) -> ParsedRecords:
        """What is in these values."""
        found = ParsedRecords.nothing(self._views)
        joined = ByteBuffer(self._memory, values, lengths, self._room)
        left = np.arange(len(values))
        for order in self._orders:
            before, left = len(left), self._walk(joined, left, order, found)
            if len(left) < before:
                self._orders.useful(order)
            if not left.size:
                return found
        lessons = _LESSONS
        while left.size:
            record, left = int(left[0]), left[1:]
            try:
                document = self._parse(values[record])
                found.add(record, parse_record(document, self._views))
            except RecordError as refused:
                found.refuse(record, refused)
                continue
            lesson = self._orders.learn(document) if lessons else None
            if lesson is not None:
                lessons -= 1
                left = self._walk(joined, left, lesson, found)
        return found

    def _walk(
        self, joined: ByteBuffer, among: Indices, order: Order, found: ParsedRecords
    ) -> Indices:
        """Walk over some records in one order; returns those that it does not fit."""
        walk = BatchScan(joined, among, self._segments)
        known = walk.over(order)
        for number, name in enumerate(self._views):
            found.together[name] += walk.rows(number)
        return among[~known]

    def _parse(self, value: bytes) -> object:
        try:
            if may_reserve_much(value, self._bounds["max_array_len"]):
                check_nesting(value)
            return msgpack.unpackb(
                value, strict_map_key=True, unicode_errors="surrogateescape", **self._bounds
            )
        except (ValueError, msgpack.UnpackException) as error:
            detail = f"{self._explained(error)}{resemblance(value, 'msgpack')}"
            raise RecordError("malformed", f"not MessagePack within the limits: {detail}") from None

    def _explained(self, error: Exception) -> str:
        """The parser's message; where it speaks of its own arguments, in the contract's terms."""
        if isinstance(error, msgpack.ExtraData):
            return f"{len(error.extra)} bytes follow the first value"
        exceeded = _EXCEEDED.fullmatch(str(error))
        if exceeded is None:
            return str(error) or type(error).__name__
        if exceeded["kind"] == "map":
            most = f"{self._bounds['max_map_len']} (limits.views)"
            return f"a map of {exceeded['length']} fields, more than {most}; {NEEDED}; {DESCRIBED}"
        widest = max(view.dimension for view in self._views.values())
        return f"a list of {exceeded['length']} values; the largest view has {widest} features"
