"""Files in the place of a broker: the pipeline sees one partition, and publishes into files.

A transaction is committed in this order, so that a crash between any two steps changes nothing:

1. rankings and dead letters are appended to their files, and safe on disk;
2. the journal takes the state, with the lengths of those files and a mark of the input.

What is in the files behind the lengths that the journal knows is cut off at the next start.
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

    def scan(self, start: int, end: int) -> Iterator[StoredRecord | None]:
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

    def scan(self, start: int, end: int) -> Iterator[StoredRecord | None]:  # noqa: ARG002  # nothing is there
        """Nothing."""
        yield from ()

    def close(self) -> None:
        """Nothing to let go of."""


class FileTransport:
    """See `stream_fs.pipeline.ports.Transport`; of one partition, and for one process.

    `outputs` by topic. Without a reading there is only the state to look at.
    """

    def __init__(
        self,
        partition: Partition,
        state_topic: str,
        journal: Journal,
        outputs: Mapping[str, Output] | None = None,
        reading: RecordSequence | None = None,
        timestamp: Callable[[int], int] = lambda _: 0,
    ) -> None:
        self.partition = partition
        self.state_topic = state_topic
        self.journal = journal
        self.outputs = dict(outputs or {})
        self.reading = reading
        self.timestamp = timestamp
        self.first_notes: Mapping[str, Plain] = {}
        """What the next transaction notes besides, once."""
        self.tenures = dict.fromkeys((False, True), 0)
        """Number of the last publisher that took over, by whether it is a legacy one."""

    def input(self, topics: Sequence[str], assignment: Assignment) -> FileInput:
        """The records of the files."""
        if self.reading is None or self.partition.topic not in topics:
            raise FatalError(f"there is nothing to read for {', '.join(topics)}")
        return FileInput(self.partition, self.reading, self.timestamp, assignment)

    def publisher(
        self,
        partition: Partition,
        *,
        legacy: bool = False,
    ) -> FilePublisher:
        """The publisher; the lock on the journal excludes processes of every release."""
        if partition != self.partition:
            raise FatalError(f"the files are those of {self.partition}, not of {partition}")
        return FilePublisher(self, legacy=legacy)

    def group_offset(self, partition: Partition) -> int | None:  # noqa: ARG002  # there is but one
        """As if the group had committed: a journal is continued by the replay that wrote it."""
        return 0

    def merge_publisher(self, *, legacy: bool = False) -> FilePublisher:  # noqa: ARG002  # there is none
        """There is none: a single partition is not merged."""
        raise FatalError(f"the files are those of {self.partition} alone: nothing can be merged")

    def state_log_reader(self) -> StateLogReader:
        """None either: see `merge_publisher`."""
        raise FatalError(f"the files are those of {self.partition} alone: nothing can be merged")

    def state_log(self, partition: Partition) -> JournalLog:  # noqa: ARG002  # there is but one
        """The journal's records."""
        return JournalLog(self.journal)

    def input_log(self, partition: Partition) -> Unbounded:  # noqa: ARG002  # there is but one
        """The input, of which the end is known only when it is there."""
        return Unbounded()


class FilePublisher:
    """See `pipeline.ports.Publisher`; a transaction is in memory until it is committed."""

    def __init__(self, transport: FileTransport, *, legacy: bool) -> None:
        self._transport = transport
        self._legacy = legacy
        self._tenure: int | None = None
        self._state: list[StoredRecord] = []
        self._published: dict[str, list[OutgoingRecord]] = {}
        self._open = False

    def acquire(self) -> bool:
        """Fence every other publisher of this kind; other processes are kept out by a lock."""
        self._void()
        self._transport.tenures[self._legacy] += 1
        self._tenure = self._transport.tenures[self._legacy]
        return True

    def begin(self) -> None:
        """Open a transaction."""
        self._check()
        self._open = True

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        """Keep the records for the commit; offsets are the journal's, or the place in the output.

        Raises `FatalError` for a topic that has no file.
        """
        self._check()
        if not self._open:
            raise AbortableError("no transaction is open")
        return [self._keep(record) for record in records]

    def commit(self) -> None:
        """Write it out, in the order that the module tells."""
        self._check()
        for topic, records in self._published.items():
            self._transport.outputs[topic].append(records)
        self._transport.journal.commit(self._state, self._notes())
        self._transport.first_notes = {}
        self._void()

    def abort(self) -> None:
        """Forget it."""
        self._void()

    def close(self) -> None:
        """Let go."""
        self._void()
        self._tenure = None

    def _keep(self, record: OutgoingRecord) -> int:
        transport = self._transport
        if record.topic == transport.state_topic:
            offset = transport.journal.reserve()
            self._state.append(StoredRecord(offset, record.key or b"", record.value))
            return offset
        if record.topic not in transport.outputs:
            raise FatalError(f"there is no file for what is published to {record.topic}")
        waiting = self._published.setdefault(record.topic, [])
        waiting.append(record)
        return len(waiting) - 1

    def _notes(self) -> dict[str, Plain]:
        """How far everything else is with this transaction."""
        transport = self._transport
        notes: dict[str, Plain] = dict(transport.first_notes)
        if transport.outputs:
            notes["outputs"] = {topic: output.length for topic, output in transport.outputs.items()}
        for record in self._state:
            parsed = parse_key(record.key)
            if parsed and parsed.content == "progress" and parsed.keys.owner is not None:
                notes["input"] = self._mark(record.value)
        return notes

    def _mark(self, progress: bytes | None) -> Plain:
        reading = self._transport.reading
        if progress is None or reading is None:
            return None
        offset = decode_progress(progress).next_offset
        reading.forget(offset)
        mark = reading.mark(offset)
        return None if mark is None else list(mark)

    def _check(self) -> None:
        if self._tenure != self._transport.tenures[self._legacy]:
            self._void()
            raise FencedError("another publisher has taken over")

    def _void(self) -> None:
        self._state, self._published, self._open = [], {}, False
