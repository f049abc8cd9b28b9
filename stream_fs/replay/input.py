"""The records of files as the pipeline's input: one partition, which is assigned at once."""

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
"""Of one poll; exceeded by at most one record."""


class FileInput:
    """See `stream_fs.pipeline.ports.Input`."""

    def __init__(
        self,
        partition: Partition,
        records: RecordSequence,
        timestamp: Callable[[int], int],
        assignment: Assignment,
    ) -> None:
        self._partition = partition
        self._records = records
        self._timestamp = timestamp
        self._assignment = assignment
        self._assigned = False
        self._resumed = False

    def poll(
        self,
        timeout: float,  # noqa: ARG002  # a file is read without waiting
        max_records: int | None = None,
    ) -> Mapping[Partition, Sequence[Message]]:
        """The next records."""
        if not self._assigned:
            self._assigned = True
            self._assignment.assigned([self._partition])
        if not self._resumed:
            return {}
        first = self._records.position
        values = self._records.read(
            BATCH_RECORDS if max_records is None else max_records, BATCH_BYTES
        )
        messages = [
            Message(*self._partition, offset, self._timestamp(offset), None, value)
            for offset, value in enumerate(values, first)
        ]
        return {self._partition: messages} if messages else {}

    def resume(self, partition: Partition, offset: int) -> None:  # noqa: ARG002  # there is but one
        """Continue at this record."""
        self._records.seek(offset)
        self._resumed = True

    def pause(self, partition: Partition) -> None:  # noqa: ARG002  # there is but one
        """Deliver nothing until `resume`."""
        self._resumed = False

    def bounds(self, partition: Partition) -> tuple[int, int]:  # noqa: ARG002  # there is but one
        """0 and the end, once that is reached; `RecordSequence` detects missing records."""
        return 0, self._records.position if self._records.exhausted else LARGEST

    def unread(self, partition: Partition, position: int) -> int | None:  # noqa: ARG002  # one only
        """The number of records from `position` on; None before the end is reached."""
        return max(0, self._records.position - position) if self._records.exhausted else None

    def connection_error(self) -> str | None:
        """None: a file that cannot be read is an error."""
        return None

    def commit_group_offset(self, offsets: Mapping[Partition, int]) -> None:
        """Do nothing: there is no group."""

    def group_offset(self, partition: Partition) -> int | None:  # noqa: ARG002  # there is no group
        """None: there is no group."""
        return None

    def close(self) -> None:
        """Revoke the partition, which may commit a snapshot."""
        if self._assigned:
            self._assigned = self._resumed = False
            self._assignment.revoked([self._partition])


class InputMark(NamedTuple):
    """All records before an offset: their number of bytes and their CRC-32.

    Two inputs with the same mark are taken for the same; this detects mistakes, not attacks.
    """

    offset: int
    bytes: int
    crc: int


class RecordSequence:
    """The records of all sources, read forward and compared with a mark.

    `expected` is the mark that an earlier run has stored, if there was one.
    """

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
        """Whether the end of the last file was reached."""
        return self._exhausted

    def seek(self, offset: int) -> None:
        """Skip to a record; to an earlier one by reading from the beginning.

        Raises `InputChanged` where the skipped records are not those of the earlier run.
        """
        if offset < self.position:
            self._restart()
        while self.position < offset and self._next() is not None:
            self.drop_marks(self.position)

    def read(self, max_records: int, max_bytes: int) -> list[bytes]:
        """The next records, with at most one beyond `max_bytes`; raises as `seek` does.

        Also raises `BrokenFile`, once all records before the damage were returned.
        """
        values: list[bytes] = []
        limit = self._last.bytes + max_bytes
        while self._damage is None and len(values) < max_records and self._last.bytes < limit:
            try:
                value = self._next()
            except BrokenFile as damage:
                self._damage = damage
                break
            if value is None:
                break
            values.append(value)
        if self._damage is not None and not values:
            raise self._damage
        return values

    def mark(self, offset: int) -> InputMark | None:
        """The mark at an offset that was read and not dropped."""
        return next((mark for mark in self._marks if mark.offset == offset), None)

    def drop_marks(self, offset: int) -> None:
        """Drop the marks before this offset."""
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
                f"the first {expected.offset} records are not those of which the checkpoint was "
                "made"
            )
        self._last = mark
        self._marks.append(mark)
        return value
