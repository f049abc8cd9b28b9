"""The records of files, as the pipeline's input: one partition, which is ours from the start."""

from __future__ import annotations

import zlib
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from typing import Final, NamedTuple

from stream_fs.checkpoint.fields import LARGEST
from stream_fs.errors import BrokenFile, InputChanged
from stream_fs.pipeline.ports import Assignment, Partition
from stream_fs.records import Message
from stream_fs.replay.sources import Source

BATCH_RECORDS: Final = 500
BATCH_BYTES: Final = 8 << 20
"""Of one poll, or one record more."""


class FileInput:
    """See `stream_fs.pipeline.ports.Input`."""

    def __init__(
        self,
        partition: Partition,
        reading: RecordSequence,
        timestamp: Callable[[int], int],
        assignment: Assignment,
    ) -> None:
        self._partition = partition
        self._reading = reading
        self._timestamp = timestamp
        self._assignment = assignment
        self._assigned = False
        self._resumed = False

    def poll(
        self,
        timeout: float,  # noqa: ARG002  # a file does not keep one waiting
        max_records: int | None = None,
    ) -> Mapping[Partition, Sequence[Message]]:
        """The next records, as many as a task should get at once."""
        if not self._assigned:
            self._assigned = True
            self._assignment.assigned([self._partition])
        if not self._resumed:
            return {}
        first = self._reading.position
        values = self._reading.read(
            BATCH_RECORDS if max_records is None else max_records, BATCH_BYTES
        )
        messages = [
            Message(*self._partition, offset, self._timestamp(offset), None, value)
            for offset, value in enumerate(values, first)
        ]
        return {self._partition: messages} if messages else {}

    def resume(self, partition: Partition, offset: int) -> None:  # noqa: ARG002  # there is but one
        """Go on at this record."""
        self._reading.seek(offset)
        self._resumed = True

    def pause(self, partition: Partition) -> None:  # noqa: ARG002  # there is but one
        """Read nothing for a while."""
        self._resumed = False

    def bounds(self, partition: Partition) -> tuple[int, int]:  # noqa: ARG002  # there is but one
        """From 0; the end is known when it is reached. `RecordSequence` judges what is missing."""
        return 0, self._reading.position if self._reading.exhausted else LARGEST

    def unread(self, partition: Partition, position: int) -> int | None:  # noqa: ARG002  # one only
        """The number of records from `position` on, when all were read."""
        return max(0, self._reading.position - position) if self._reading.exhausted else None

    def connection_error(self) -> str | None:
        """A file is there, or an error."""
        return None

    def commit_group_offset(self, offsets: Mapping[Partition, int]) -> None:
        """There is no group to tell."""

    def group_offset(self, partition: Partition) -> int | None:  # noqa: ARG002  # there is no group
        """Nobody believes anything."""
        return None

    def close(self) -> None:
        """Give the partition back, which may commit a snapshot."""
        if self._assigned:
            self._assigned = self._resumed = False
            self._assignment.revoked([self._partition])


class InputMark(NamedTuple):
    """All records before an offset: how many bytes they have, and their CRC-32.

    Two runs of records with the same mark are taken for the same; the mark guards against mistakes,
    not against malice.
    """

    offset: int
    bytes: int
    crc: int


class RecordSequence:
    """Reads forward; `expected` is the mark that an earlier life has left, if there was one."""

    def __init__(self, sources: Sequence[Source], expected: InputMark | None = None) -> None:
        self._sources = sources
        self.expected = expected
        self._marks: deque[InputMark] = deque()
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

    def mark(self, offset: int) -> InputMark | None:
        """The mark at an offset that was read, and not forgotten."""
        return next((mark for mark in self._marks if mark.offset == offset), None)

    def forget(self, offset: int) -> None:
        """Marks before this offset are not asked for any more."""
        while self._marks and self._marks[0].offset < offset:
            self._marks.popleft()

    def _restart(self) -> None:
        self._values: Iterator[bytes] = chain.from_iterable(self._sources)
        self._last = InputMark(0, 0, 0)
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
        mark = InputMark(last.offset + 1, last.bytes + len(value), zlib.crc32(value, last.crc))
        if expected is not None and mark.offset == expected.offset and mark != expected:
            raise InputChanged(
                f"the first {expected.offset} records are not those that the checkpoint was made of"
            )
        self._last = mark
        self._marks.append(mark)
        return value
