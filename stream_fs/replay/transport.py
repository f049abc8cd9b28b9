"""The file implementation of the pipeline's transport: one partition, published into files.

A transaction is committed in this order, so that a crash between two steps changes nothing:

1. rankings and dead letters are appended to their files and synchronised to disk;
2. the journal stores the state, the lengths of these files, and a mark of the input.

The next start truncates the files to the lengths in the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from stream_fs.checkpoint import decode_progress, parse_key
from stream_fs.checkpoint.fields import LARGEST, Plain
from stream_fs.errors import AbortableError, FatalError, FencedError
from stream_fs.pipeline.ports import (
    Assignment,
    OutgoingRecord,
    Partition,
    StateLogReader,
    StoredRecord,
)
from stream_fs.replay.input import FileInput, RecordSequence
from stream_fs.replay.journal import Journal
from stream_fs.replay.outputs import Output


class FileTransport:
    """See `stream_fs.pipeline.ports.Transport`; of one partition, for one process.

    `outputs` are by topic. Without `records`, only the state can be read.
    """

    def __init__(
        self,
        partition: Partition,
        state_topic: str,
        journal: Journal,
        outputs: Mapping[str, Output] | None = None,
        records: RecordSequence | None = None,
        timestamp: Callable[[int], int] = lambda _: 0,
    ) -> None:
        self.partition = partition
        self.state_topic = state_topic
        self.journal = journal
        self.outputs = dict(outputs or {})
        self.records = records
        self.timestamp = timestamp
        self.first_notes: Mapping[str, Plain] = {}
        """Notes that only the next transaction adds."""
        self.epochs = dict.fromkeys((False, True), 0)
        """The epoch of the current owner, of legacy publishers (True) and of the others."""

    def input(self, topics: Sequence[str], assignment: Assignment) -> FileInput:
        """The records of the files."""
        if self.records is None or self.partition.topic not in topics:
            raise FatalError(f"there is no file of records for {', '.join(topics)}")
        return FileInput(self.partition, self.records, self.timestamp, assignment)

    def publisher(self, partition: Partition, *, legacy: bool = False) -> FilePublisher:
        """The publisher; the lock on the journal excludes processes of every release."""
        if partition != self.partition:
            raise FatalError(f"the files are those of {self.partition}, not of {partition}")
        return FilePublisher(self, legacy=legacy)

    def group_offset(self, partition: Partition) -> int | None:  # noqa: ARG002  # there is but one
        """0, as if the group had committed it: only its own replay continues a journal."""
        return 0

    def merge_publisher(self, *, legacy: bool = False) -> FilePublisher:  # noqa: ARG002  # there is none
        """Refused: a single partition is not merged."""
        raise FatalError(f"the files are those of {self.partition} alone: nothing can be merged")

    def state_log_reader(self) -> StateLogReader:
        """Refused likewise."""
        raise FatalError(f"the files are those of {self.partition} alone: nothing can be merged")

    def state_log(self, partition: Partition) -> JournalLog:  # noqa: ARG002  # there is but one
        """The journal's records."""
        return JournalLog(self.journal)

    def input_log(self, partition: Partition) -> UnboundedLog:  # noqa: ARG002  # there is but one
        """The input, whose end is known only once it is reached."""
        return UnboundedLog()


class FilePublisher:
    """See `stream_fs.pipeline.ports.Publisher`; a transaction is in memory until its commit."""

    def __init__(self, transport: FileTransport, *, legacy: bool) -> None:
        self._transport = transport
        self._legacy = legacy
        self._epoch: int | None = None
        self._state: list[StoredRecord] = []
        self._published: dict[str, list[OutgoingRecord]] = {}
        self._open = False

    def acquire(self) -> bool:
        """Fence the other publishers of this kind; a lock excludes other processes."""
        self._clear()
        self._transport.epochs[self._legacy] += 1
        self._epoch = self._transport.epochs[self._legacy]
        return True

    def begin(self) -> None:
        """Open a transaction."""
        self._check_owner()
        self._open = True

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        """Keep the records for the commit; returns their offsets in the journal or the output.

        Raises `FatalError` for a topic without a file.
        """
        self._check_owner()
        if not self._open:
            raise AbortableError("no transaction is open")
        return [self._keep(record) for record in records]

    def commit(self) -> None:
        """Write the transaction, in the order that the module describes."""
        self._check_owner()
        for topic, records in self._published.items():
            self._transport.outputs[topic].append(records)
        self._transport.journal.commit(self._state, self._notes())
        self._transport.first_notes = {}
        self._clear()

    def abort(self) -> None:
        """Drop the transaction."""
        self._clear()

    def close(self) -> None:
        """Drop the transaction and the ownership."""
        self._clear()
        self._epoch = None

    def _keep(self, record: OutgoingRecord) -> int:
        transport = self._transport
        if record.topic == transport.state_topic:
            offset = transport.journal.reserve()
            self._state.append(StoredRecord(offset, record.key or b"", record.value))
            return offset
        if record.topic not in transport.outputs:
            raise FatalError(f"there is no output file for topic {record.topic}")
        records = self._published.setdefault(record.topic, [])
        records.append(record)
        return len(records) - 1

    def _notes(self) -> dict[str, Plain]:
        """The lengths of the outputs and the mark of the input as of this transaction."""
        transport = self._transport
        notes: dict[str, Plain] = dict(transport.first_notes)
        if transport.outputs:
            notes["outputs"] = {topic: output.length for topic, output in transport.outputs.items()}
        for record in self._state:
            parsed = parse_key(record.key)
            if parsed and parsed.content == "progress" and parsed.keys.owner is not None:
                notes["input"] = self._input_mark(record.value)
        return notes

    def _input_mark(self, progress: bytes | None) -> Plain:
        records = self._transport.records
        if progress is None or records is None:
            return None
        offset = decode_progress(progress).next_offset
        records.drop_marks(offset)
        mark = records.mark(offset)
        return None if mark is None else list(mark)

    def _check_owner(self) -> None:
        if self._epoch != self._transport.epochs[self._legacy]:
            self._clear()
            raise FencedError("another publisher has acquired the partition")

    def _clear(self) -> None:
        self._state, self._published, self._open = [], {}, False


class JournalLog:
    """See `stream_fs.pipeline.ports.StateLog`."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def end(self) -> int:
        """The offset behind the last record, aborted ones included."""
        return self._journal.end

    def start(self) -> int:
        """The offset of the first record."""
        records = self._journal.records
        return records[0].offset if records else self._journal.end

    def scan(self, start: int, end: int) -> Iterator[StoredRecord | None]:
        """The records in [start, end), without waiting."""
        yield from [record for record in self._journal.records if start <= record.offset < end]

    def close(self) -> None:
        """Do nothing: the journal is not owned."""


class UnboundedLog:
    """A log that contains every offset, and is never read."""

    def end(self) -> int:
        """Behind the largest possible offset."""
        return LARGEST

    def start(self) -> int:
        """The first offset."""
        return 0

    def scan(self, start: int, end: int) -> Iterator[StoredRecord | None]:  # noqa: ARG002  # it is empty
        """No records."""
        yield from ()

    def close(self) -> None:
        """Do nothing."""
