"""Several files as one run of records, counted from 0, that can tell whether it was seen before."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from stream_fs.errors import BrokenFile, InputChanged
from stream_fs.replay.sources import Source


class Mark(NamedTuple):
    """All records before an offset: how many bytes they have, and their CRC-32.

    Two runs of records with the same mark are taken for the same; the mark guards against mistakes,
    not against malice.
    """

    offset: int
    bytes: int
    crc: int


class Reading:
    """Reads forward; `expected` is the mark that an earlier life has left, if there was one."""

    def __init__(self, sources: Sequence[Source], expected: Mark | None = None) -> None:
        self._sources = sources
        self.expected = expected
        self._marks: deque[Mark] = deque()
        self._damage: BrokenFile | None = None
        self._restart()

    @property
    def position(self) -> int:
        """The number of the next record."""
        return self._last.offset

    @property
    def exhausted(self) -> bool:
        """Whether the last file has come to its end."""
        return self._exhausted

    def seek(self, offset: int) -> None:
        """Go to a record, from the beginning where it lies behind us.

        Raises `InputChanged` where the records on the way are not those of the earlier life.
        """
        if offset < self.position:
            self._restart()
        while self.position < offset and self._next() is not None:
            self.forget(self.position)

    def read(self, most_records: int, most_bytes: int) -> list[bytes]:
        """The next records, so many or a few more bytes than that; raises as `seek` does.

        Raises `BrokenFile` too, but not before the records in front of the damage were handed out.
        """
        found: list[bytes] = []
        enough = self._last.bytes + most_bytes
        while self._damage is None and len(found) < most_records and self._last.bytes < enough:
            try:
                value = self._next()
            except BrokenFile as damage:
                self._damage = damage
                break
            if value is None:
                break
            found.append(value)
        if self._damage is not None and not found:
            raise self._damage
        return found

    def mark(self, offset: int) -> Mark | None:
        """The mark at an offset that was read, and not forgotten."""
        return next((mark for mark in self._marks if mark.offset == offset), None)

    def forget(self, offset: int) -> None:
        """Marks before this offset are not asked for any more."""
        while self._marks and self._marks[0].offset < offset:
            self._marks.popleft()

    def _restart(self) -> None:
        self._values: Iterator[bytes] = chain.from_iterable(self._sources)
        self._last = Mark(0, 0, 0)
        self._marks.clear()
        self._marks.append(self._last)
        self._exhausted = False
        self._damage = None

    def _next(self) -> bytes | None:
        value = next(self._values, None)
        expected = self.expected
        if value is None:
            self._exhausted = True
            if expected is not None and self.position < expected.offset:
                raise InputChanged(
                    f"the checkpoint is {expected.offset} records into the input, which has only "
                    f"{self.position}"
                )
            return None
        last = self._last
        mark = Mark(last.offset + 1, last.bytes + len(value), zlib.crc32(value, last.crc))
        if expected is not None and mark.offset == expected.offset and mark != expected:
            raise InputChanged(
                f"the first {expected.offset} records are not those that the checkpoint was made of"
            )
        self._last = mark
        self._marks.append(mark)
        return value
