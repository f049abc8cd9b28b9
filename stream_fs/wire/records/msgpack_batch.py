"""Many MessagePack records at once: one walk over their joined bytes, all cursors in step.

Producers write their fields and views in one order, so records differ only in the id and in which
views are missing. For a known order the walk compares what must be there with what is there, for
all records together, and notes where the packed rows lie. Whatever it does not recognise (another
order, other forms, longer encodings of the same, anything wrong) is left to the careful way.
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
from stream_fs.wire.records.parser import FIELDS, Rows


class Memory:
    """Memory for one run of joined values after another."""

    def __init__(self) -> None:
        self._stream = BytesIO()

    def join(self, values: Sequence[bytes], room: int) -> memoryview:
        """The values one after another, then `room` zeros; whatever follows has no meaning."""
        try:
            self._fill(values, room)
        except BufferError:  # what was joined before is still in use
            self._stream = BytesIO()
            self._fill(values, room)
        return self._stream.getbuffer()

    def _fill(self, values: Sequence[bytes], room: int) -> None:
        self._stream.seek(0)
        self._stream.writelines(values)
        self._stream.write(bytes(room))


class ByteBuffer:
    """Values as one run of bytes: where each of them starts and ends, and a place beyond."""

    def __init__(
        self, memory: Memory, values: Sequence[bytes], lengths: Indices, room: int
    ) -> None:
        """Join them; at least `room` bytes can be read from `beyond` on."""
        self._memory = memory.join(values, room + 1)
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._memory, np.uint8)
        self.ends = np.cumsum(lengths)
        self.starts = self.ends - lengths
        self.beyond = int(self.ends[-1]) + 1

    def items(self, size: int) -> NDArray[Any]:
        """At every offset the `size` bytes from there, as one item: nothing is copied."""
        count = max(len(self._memory) - size + 1, 0)
        return np.ndarray((count,), f"V{size}", self._memory, strides=(1,))


_MOST: Final = 8
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Order:
    """In which order the fields and the views (by their number) are written."""

    fields: tuple[str, ...]
    views: tuple[int, ...]


class FieldOrders:
    """A few orders, the latest useful one first. They decide how fast a record is read, not how."""

    def __init__(self, views: Sequence[str]) -> None:
        self._number = {name: number for number, name in enumerate(views)}
        self._known = [Order(FIELDS, tuple(range(len(views))))]

    def __iter__(self) -> Iterator[Order]:
        return iter(tuple(self._known))

    def useful(self, order: Order) -> None:
        """It fitted, so try it first next time."""
        self._known.remove(order)
        self._known.insert(0, order)

    def learn(self, document: object) -> Order | None:
        """The order of a good record that none of the known ones covers; None if one does."""
        if not isinstance(document, dict):
            return None
        fields = tuple(document)
        views = tuple(self._number[name] for name in document["views"])
        if any(
            _within(fields, known.fields) and _within(views, known.views) for known in self._known
        ):
            return None
        order = Order(_completed(fields, FIELDS), _completed(views, range(len(self._number))))
        self._known = [order, *self._known[: _MOST - 1]]
        return order


def _within(short: Sequence[T], long: Sequence[T]) -> bool:
    """Whether the long one becomes the short one by leaving some out."""
    rest = iter(long)
    return all(item in rest for item in short)


def _completed(some: tuple[T, ...], every: Sequence[T]) -> tuple[T, ...]:
    return (*some, *(item for item in every if item not in some))


ROOM: Final = 16
"""Bytes that a walk may read beyond the longest segment that it compares."""


class Segments:
    """The bytes before a view's values, for each form that the walk knows: name and header."""

    def __init__(self, view: DeclaredView) -> None:
        """In the shortest encoding, as packers write it."""
        name = msgpack.packb(view.name)
        self.view = view
        self.packed = name + msgpack.packb(bytes(view.row_bytes))[: -view.row_bytes]
        self.missing = name + msgpack.packb(None)
        self.listed = name + msgpack.Packer().pack_array_header(view.dimension)

    @property
    def longest(self) -> int:
        """Length of the longest of them."""
        return max(len(self.packed), len(self.listed))


class BatchScan:
    """The cursors of some records, and where the rows of each view were found."""

    def __init__(self, joined: ByteBuffer, among: Indices, segments: Sequence[Segments]) -> None:
        self._joined = joined
        self._among = among
        self._segments = segments
        self._cursor = joined.starts[among]
        self._ends = joined.ends[among]
        self._every: Mask = np.ones(len(among), bool)
        """The answer "all of them": compared by identity, which is cheap."""
        self._known = self._every.copy()
        self._offsets: list[Indices | None] = [None for _ in segments]
        self._lists: list[list[Rows]] = [[] for _ in segments]

    def over(self, order: Order) -> Mask:
        """Walk over whole records. A record is known when the walk ends where the record does."""
        expected, seen = self._map_header(), np.zeros(len(self._cursor), np.intp)
        for name in order.fields:
            seen += _FIELD[name](self, order)
            if not self._known.any():
                break
        self._known &= (seen == expected) & (self._cursor == self._ends)
        return self._known

    def rows(self, number: int) -> list[Rows]:
        """The rows of one view in the records that are known."""
        view, offset = self._segments[number].view, self._offsets[number]
        found = []
        if offset is not None:
            at = np.flatnonzero(self._known & (offset >= 0))
            if at.size:
                items = self._joined.items(view.row_bytes)[offset[at]]
                rows: Working = items.view(view.floats).reshape(len(at), view.dimension)
                found.append(Rows(self._among[at], rows))
        for listed in self._lists[number]:
            kept = self._known[listed.at]
            if kept.any():
                found.append(Rows(self._among[listed.at[kept]], listed.rows[kept]))
        return found

    def _version(self, _: Order) -> Mask:
        here = self._equal(b"\xa1v\x01")
        self._known &= here
        self._advance(here, 3)
        return here

    def _identity(self, _: Order) -> Mask:
        """The id's bytes are not looked at."""
        here = self._equal(b"\xa2id")
        if here is self._every or here.any():
            head = self._byte(3)
            short, long = (head & 0xE0) == 0xA0, head == 0xD9
            self._known &= ~here | short | long
            steps = 4 + (head & 0x1F)
            if long.any():
                steps = np.where(long, 5 + self._byte(4), steps)
            self._leap(here, steps)
        return here

    def _views(self, order: Order) -> Mask:
        here = self._equal(b"\xa5views")
        self._known &= here
        self._advance(here, 6)
        expected, seen = self._map_header(), np.zeros(len(here), np.intp)
        some = np.zeros(len(here), bool)
        for number in order.views:
            values, missing = self._view(number)
            some |= values
            seen += values
            if missing is not None:
                seen += missing
        self._known &= (seen == expected) & some
        return here

    def _view(self, number: int) -> tuple[Mask, Mask | None]:
        """Whose view has values, and whose is null; nobody's, if it is not there at all."""
        part = self._segments[number]
        packed, offset = self._equal(part.packed), self._cursor + len(part.packed)
        self._offsets[number] = offset
        self._leap(packed, len(part.packed) + part.view.row_bytes)
        if packed is self._every:
            return packed, None
        offset[~packed] = -1
        missing = ~packed & self._equal(part.missing)
        self._advance(missing, len(part.missing))
        listed = self._list(number, ~packed & ~missing & self._equal(part.listed))
        return packed | listed, missing

    def _list(self, number: int, candidates: Mask) -> Mask:
        """Lists whose items are all single or all double floats: tag, big-endian value."""
        listed = np.zeros_like(candidates)
        if not candidates.any():
            return listed
        part = self._segments[number]
        begin, tags = self._cursor + len(part.listed), self._byte(len(part.listed))
        for tag, floats in ((0xCA, ">f4"), (0xCB, ">f8")):
            item = np.dtype([("tag", "u1"), ("value", floats)])
            size = item.itemsize * part.view.dimension
            at = np.flatnonzero(candidates & (tags == tag) & (begin + size <= self._ends))
            if not at.size:
                continue
            items = self._joined.items(size)[begin[at]].view(item).reshape(len(at), -1)
            pure = (items["tag"] == tag).all(axis=1)
            at = at[pure]
            with np.errstate(over="ignore"):
                rows = items["value"][pure].astype(part.view.floats)
            self._lists[number].append(Rows(at, rows))
            listed[at] = True
            self._leap(at, len(part.listed) + size)
        return listed

    def _map_header(self) -> Indices:
        """Step over the header of a map; how many entries it announces."""
        head = self._byte(0)
        count, short = head & 0x0F, (head & 0xF0) == 0x80
        if short.all():
            self._cursor += 1
            return count
        long = head == 0xDE
        self._known &= short | long
        count = np.where(long, self._byte(1) << 8 | self._byte(2), count)
        self._advance(short, 1)
        self._advance(long, 3)
        return count

    def _byte(self, ahead: int) -> Indices:
        """The byte so far ahead of each cursor."""
        return np.asarray(self._joined.bytes[self._cursor + ahead], np.intp)

    def _equal(self, text: bytes) -> Mask:
        """Whether these bytes come next."""
        there = self._joined.items(len(text))[self._cursor]
        if there.tobytes() == text * len(there):
            return self._every
        return np.asarray(there == np.frombuffer(text, there.dtype), bool)

    def _advance(self, where: Mask | Indices, steps: int | Indices) -> None:
        """Move cursors over something that was compared, so not far beyond the last end."""
        if where is self._every:
            self._cursor += steps
        else:
            self._cursor[where] += steps if isinstance(steps, int) else steps[where]

    def _leap(self, where: Mask | Indices, steps: int | Indices) -> None:
        """Move cursors over something announced; what leads too far stops where nothing ends."""
        self._advance(where, steps)
        np.minimum(self._cursor, self._joined.beyond, out=self._cursor)


_FIELD: Final = {"v": BatchScan._version, "id": BatchScan._identity, "views": BatchScan._views}
assert set(_FIELD) == set(FIELDS)
