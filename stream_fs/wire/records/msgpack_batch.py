"""Many MessagePack records at once: one scan over their concatenated bytes, all cursors in step.

Producers write their fields and views in one order, so records differ only in the id and in which
views are missing. For a known order the scan compares the expected bytes with those at the cursors,
for all records together, and notes where the packed rows begin. Records that it does not recognise
(another order, other forms, longer encodings, any fault) are left to the parser of single records.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final, TypeVar

import msgpack
import numpy as np
from numpy.typing import NDArray

from stream_fs.selector.arrays import Indices, Mask, Working
from stream_fs.wire.declared import DeclaredView
from stream_fs.wire.records.parser import FIELDS, RowBlock

T = TypeVar("T")

_MAX_ORDERS: Final = 8
"""Field orders that are remembered."""

LOOKAHEAD_BYTES: Final = 16
"""Bytes that a scan may read beyond the longest segment that it compares."""


@dataclass(frozen=True, slots=True)
class FieldOrder:
    """The order in which fields and views (by their number) are written."""

    fields: tuple[str, ...]
    views: tuple[int, ...]


class FieldOrders:
    """A few known orders, the last match first. They affect the speed, not the result."""

    def __init__(self, views: Sequence[str]) -> None:
        self._numbers = {name: number for number, name in enumerate(views)}
        self._orders = [FieldOrder(FIELDS, tuple(range(len(views))))]

    def __iter__(self) -> Iterator[FieldOrder]:
        return iter(tuple(self._orders))

    def move_to_front(self, order: FieldOrder) -> None:
        """Try this order first in the next batch."""
        self._orders.remove(order)
        self._orders.insert(0, order)

    def learn(self, document: object) -> FieldOrder | None:
        """Add the order of a good record, and return it; None where a known order covers it."""
        if not isinstance(document, dict):
            return None
        fields = tuple(document)
        views = tuple(self._numbers[name] for name in document["views"])
        if any(
            _is_subsequence(fields, order.fields) and _is_subsequence(views, order.views)
            for order in self._orders
        ):
            return None
        learned = FieldOrder(
            _completed(fields, FIELDS), _completed(views, range(len(self._numbers)))
        )
        self._orders = [learned, *self._orders[: _MAX_ORDERS - 1]]
        return learned


def _is_subsequence(short: Sequence[T], long: Sequence[T]) -> bool:
    rest = iter(long)
    return all(item in rest for item in short)


def _completed(items: tuple[T, ...], full: Sequence[T]) -> tuple[T, ...]:
    """The items, then those of the full sequence that are not among them."""
    return (*items, *(item for item in full if item not in items))


class ViewSegments:
    """The bytes before the values of a view, by form: its name and the header of the values."""

    def __init__(self, view: DeclaredView) -> None:
        """In the shortest encoding, as packers write it."""
        name = msgpack.packb(view.name)
        self.view = view
        self.packed = name + msgpack.packb(bytes(view.row_bytes))[: -view.row_bytes]
        self.missing = name + msgpack.packb(None)
        self.listed = name + msgpack.Packer().pack_array_header(view.dimension)

    @property
    def longest(self) -> int:
        """Length of the longest segment."""
        return max(len(self.packed), len(self.listed))


class ReusableMemory:
    """Memory that holds one block of values after another."""

    def __init__(self) -> None:
        self._stream = BytesIO()

    def concatenate(self, values: Sequence[bytes], padding: int) -> memoryview:
        """The values one after another, then `padding` zeros; bytes after these are undefined."""
        try:
            self._fill(values, padding)
        except BufferError:  # the previous block is still in use
            self._stream = BytesIO()
            self._fill(values, padding)
        return self._stream.getbuffer()

    def _fill(self, values: Sequence[bytes], padding: int) -> None:
        self._stream.seek(0)
        self._stream.writelines(values)
        self._stream.write(bytes(padding))


class ByteBuffer:
    """Concatenated values: where each starts and ends, and an offset beyond all of them."""

    def __init__(
        self, memory: ReusableMemory, values: Sequence[bytes], lengths: Indices, padding: int
    ) -> None:
        """Concatenate the values; at least `padding` bytes can be read from `beyond` on."""
        self._memory = memory.concatenate(values, padding + 1)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)
        self.ends = np.cumsum(lengths)
        self.starts = self.ends - lengths
        self.beyond = int(self.ends[-1]) + 1

    def items(self, size: int) -> NDArray[Any]:
        """At every offset the `size` bytes from there on, as one item; nothing is copied."""
        count = max(len(self._memory) - size + 1, 0)
        return np.ndarray((count,), f"V{size}", self._memory, strides=(1,))


class BatchScan:
    """The cursors of some records, and the offsets of the rows found so far."""

    def __init__(
        self, buffer: ByteBuffer, records: Indices, segments: Sequence[ViewSegments]
    ) -> None:
        self._buffer = buffer
        self._records = records
        self._segments = segments
        self._cursor = buffer.starts[records]
        self._ends = buffer.ends[records]
        self._all: Mask = np.ones(len(records), bool)
        """The answer "all of them": compared by identity, which is cheap."""
        self._matched = self._all.copy()
        self._offsets: list[Indices | None] = [None for _ in segments]
        self._lists: list[list[RowBlock]] = [[] for _ in segments]

    def scan(self, order: FieldOrder) -> Mask:
        """Scan whole records; those match at whose end the scan arrives."""
        expected, count = self._map_header(), np.zeros(len(self._cursor), np.intp)
        for name in order.fields:
            count += _FIELD_SCANS[name](self, order)
            if not self._matched.any():
                break
        self._matched &= (count == expected) & (self._cursor == self._ends)
        return self._matched

    def row_blocks(self, number: int) -> list[RowBlock]:
        """The rows of one view in the records that match."""
        view, offset = self._segments[number].view, self._offsets[number]
        blocks = []
        if offset is not None:
            packed = np.flatnonzero(self._matched & (offset >= 0))
            if packed.size:
                items = self._buffer.items(view.row_bytes)[offset[packed]]
                rows: Working = items.view(view.floats).reshape(len(packed), view.dimension)
                blocks.append(RowBlock(self._records[packed], rows))
        for listed in self._lists[number]:
            matched = self._matched[listed.records]
            if matched.any():
                blocks.append(
                    RowBlock(self._records[listed.records[matched]], listed.rows[matched])
                )
        return blocks

    def _version(self, _: FieldOrder) -> Mask:
        present = self._equal(b"\xa1v\x01")
        self._matched &= present
        self._advance(present, 3)
        return present

    def _id(self, _: FieldOrder) -> Mask:
        """The bytes of the id are not looked at."""
        present = self._equal(b"\xa2id")
        if present is self._all or present.any():
            head = self._byte(3)
            short, long = (head & 0xE0) == 0xA0, head == 0xD9
            self._matched &= ~present | short | long
            steps = 4 + (head & 0x1F)
            if long.any():
                steps = np.where(long, 5 + self._byte(4), steps)
            self._advance_unseen(present, steps)
        return present

    def _views(self, order: FieldOrder) -> Mask:
        present = self._equal(b"\xa5views")
        self._matched &= present
        self._advance(present, 6)
        expected, count = self._map_header(), np.zeros(len(present), np.intp)
        has_values = np.zeros(len(present), bool)
        for number in order.views:
            values, missing = self._view(number)
            has_values |= values
            count += values
            if missing is not None:
                count += missing
        self._matched &= (count == expected) & has_values
        return present

    def _view(self, number: int) -> tuple[Mask, Mask | None]:
        """Which records have values of the view, and which have null; others lack the view."""
        segments = self._segments[number]
        packed = self._equal(segments.packed)
        offset = self._cursor + len(segments.packed)
        self._offsets[number] = offset
        self._advance_unseen(packed, len(segments.packed) + segments.view.row_bytes)
        if packed is self._all:
            return packed, None
        offset[~packed] = -1
        missing = ~packed & self._equal(segments.missing)
        self._advance(missing, len(segments.missing))
        listed = self._list(number, ~packed & ~missing & self._equal(segments.listed))
        return packed | listed, missing

    def _list(self, number: int, candidates: Mask) -> Mask:
        """Lists whose items are all single or all double floats: tag, big-endian value."""
        listed = np.zeros_like(candidates)
        if not candidates.any():
            return listed
        segments = self._segments[number]
        begin, tags = self._cursor + len(segments.listed), self._byte(len(segments.listed))
        for tag, floats in ((0xCA, ">f4"), (0xCB, ">f8")):
            item = np.dtype([("tag", "u1"), ("value", floats)])
            size = item.itemsize * segments.view.dimension
            at = np.flatnonzero(candidates & (tags == tag) & (begin + size <= self._ends))
            if not at.size:
                continue
            items = self._buffer.items(size)[begin[at]].view(item).reshape(len(at), -1)
            uniform = (items["tag"] == tag).all(axis=1)
            at = at[uniform]
            with np.errstate(over="ignore"):
                rows = items["value"][uniform].astype(segments.view.floats)
            self._lists[number].append(RowBlock(at, rows))
            listed[at] = True
            self._advance_unseen(at, len(segments.listed) + size)
        return listed

    def _map_header(self) -> Indices:
        """Step over the header of a map; returns its number of entries."""
        head = self._byte(0)
        count, short = head & 0x0F, (head & 0xF0) == 0x80
        if short.all():
            self._cursor += 1
            return count
        long = head == 0xDE
        self._matched &= short | long
        count = np.where(long, self._byte(1) << 8 | self._byte(2), count)
        self._advance(short, 1)
        self._advance(long, 3)
        return count

    def _byte(self, ahead: int) -> Indices:
        """The byte `ahead` of each cursor."""
        return np.asarray(self._buffer.bytes[self._cursor + ahead], np.intp)

    def _equal(self, expected: bytes) -> Mask:
        """Which cursors are at these bytes."""
        items = self._buffer.items(len(expected))[self._cursor]
        if items.tobytes() == expected * len(items):
            return self._all
        return np.asarray(items == np.frombuffer(expected, items.dtype), bool)

    def _advance(self, where: Mask | Indices, steps: int | Indices) -> None:
        """Move cursors over bytes that were compared, so not far beyond the last end."""
        if where is self._all:
            self._cursor += steps
        else:
            self._cursor[where] += steps if isinstance(steps, int) else steps[where]

    def _advance_unseen(self, where: Mask | Indices, steps: int | Indices) -> None:
        """Move cursors over bytes that were announced; stops `beyond`, where no record ends."""
        self._advance(where, steps)
        np.minimum(self._cursor, self._buffer.beyond, out=self._cursor)


_FIELD_SCANS: Final = {"v": BatchScan._version, "id": BatchScan._id, "views": BatchScan._views}
assert set(_FIELD_SCANS) == set(FIELDS)
