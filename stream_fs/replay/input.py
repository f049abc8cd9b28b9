"""The records of files, as the pipeline's input: one partition, which is ours from the start."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from stream_fs.checkpoint.plain import LARGEST
from stream_fs.pipeline.ports import Assignment, Partition
from stream_fs.records import Message
from stream_fs.replay.reading import Reading

BATCH_RECORDS: Final = 500
BATCH_BYTES: Final = 8 << 20
"""Of one poll, or one record more."""


class FileInput:
    """See `stream_fs.pipeline.ports.Input`."""

    def __init__(
        self,
        partition: Partition,
        reading: Reading,
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
        most: int | None = None,
    ) -> Mapping[Partition, Sequence[Message]]:
        """The next records, as many as a task should get at once."""
        if not self._assigned:
            self._assigned = True
            self._assignment.assigned([self._partition])
        if not self._resumed:
            return {}
        first = self._reading.position
        values = self._reading.read(BATCH_RECORDS if most is None else most, BATCH_BYTES)
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
        """From 0; the end is known when it is reached, and `Reading` judges what is missing."""
        return 0, self._reading.position if self._reading.exhausted else LARGEST

    def unread(self, partition: Partition, position: int) -> int | None:  # noqa: ARG002  # one only
        """The number of records from `position` on, when all were read."""
        return max(0, self._reading.position - position) if self._reading.exhausted else None

    def complaint(self) -> str | None:
        """A file is there, or an error."""
        return None

    def advise(self, offsets: Mapping[Partition, int]) -> None:
        """There is no group to tell."""

    def advised(self, partition: Partition) -> int | None:  # noqa: ARG002  # there is no group
        """Nobody believes anything."""
        return None

    def close(self) -> None:
        """Give the partition back, which may commit a snapshot."""
        if self._assigned:
            self._assigned = self._resumed = False
            self._assignment.revoked([self._partition])
