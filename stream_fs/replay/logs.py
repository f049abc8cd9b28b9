"""The state that a journal holds, and an input of which nothing is known, as logs."""

from __future__ import annotations

from collections.abc import Iterator

from stream_fs.checkpoint.plain import LARGEST
from stream_fs.pipeline.ports import Stored
from stream_fs.replay.journal import Journal


class JournalLog:
    """See `stream_fs.pipeline.ports.StateLog`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def end(self) -> int:
        """The offset behind the last record, void ones included."""
        return self._journal.end

    def start(self) -> int:
        """The offset of the first record that is there."""
        records = self._journal.records
        return records[0].offset if records else self._journal.end

    def scan(self, start: int, end: int) -> Iterator[Stored | None]:
        """The records in [start, end); nothing has to be waited for."""
        yield from [record for record in self._journal.records if start <= record.offset < end]

    def close(self) -> None:
        """Nothing to let go of."""


class Unbounded:
    """A log that holds every offset, and that nobody reads."""

    def end(self) -> int:
        """Behind the largest offset there can be."""
        return LARGEST

    def start(self) -> int:
        """The first offset."""
        return 0

    def scan(self, start: int, end: int) -> Iterator[Stored | None]:  # noqa: ARG002  # nothing is there
        """Nothing."""
        yield from ()

    def close(self) -> None:
        """Nothing to let go of."""
