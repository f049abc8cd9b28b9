"""One partition of the state topic, read by position.

Its end is asked for with isolation level read_uncommitted: the end that a reader of committed
records sees lies before the first open transaction, and would hide commits behind it.
"""

from __future__ import annotations

from collections.abc import Iterator

from confluent_kafka import KafkaError

from stream_fs.errors import FatalError
from stream_fs.kafka.errors import classified
from stream_fs.kafka.offsets import Offsets
from stream_fs.kafka.settings import ClientSettings
from stream_fs.kafka.state_reader import StateReader
from stream_fs.pipeline.ports import Partition, Stored


class KafkaStateLog:
    """See `stream_fs.pipeline.ports.StateLog`.

    With a `reader` that it shares with others, it gives way after every batch, and leaves the
    reader to the next one when it is closed; otherwise it has one of its own.
    """

    def __init__(
        self,
        settings: ClientSettings,
        partition: Partition,
        offsets: Offsets,
        reader: StateReader | None = None,
    ) -> None:
        """`partition` is of the state topic; `offsets` may be shared."""
        self._partition = partition
        self._offsets = offsets
        self.trouble = offsets.trouble
        self._first: int | None = None
        self._shared = reader is not None
        self._reader = reader or StateReader(settings, self.trouble)

    def end(self) -> int:
        """The offset behind the last record, open and aborted transactions included."""
        return self._offsets.ends([self._partition])[self._partition]

    def start(self) -> int:
        """The offset of the first record that may still be there."""
        self._first = self._offsets.first(self._partition)
        return self._first

    def scan(self, start: int, end: int) -> Iterator[Stored | None]:
        """The committed records in [start, end), in order; None where one has to wait."""
        # It moves where records are deleted only, so it is not asked for with every scan.
        position = max(start, self.start() if self._first is None else self._first)
        if position >= end:
            return
        self._reader.place(self._partition, position)
        while position < end:
            batch = self._reader.receive()
            if not batch:
                yield None
            for message in batch:
                offset = message.offset()
                assert offset is not None
                if (error := message.error()) is not None:
                    # Everything before the end of what is decided has been seen, although the
                    # last of it may be aborted records and markers, which are never delivered.
                    position = max(position, self._reached(error, offset))
                elif offset >= end:
                    return
                else:
                    self.trouble.clear()
                    yield Stored(offset, message.key() or b"", message.value())
                    position = offset + 1
            if batch and self._shared and position < end:
                yield None

    def close(self) -> None:
        """Let go."""
        if self._shared:
            self._reader.rest()
        else:
            self._reader.close()

    def _reached(self, error: KafkaError, offset: int) -> int:
        """The position that an event other than a record tells of; 0 for none."""
        if error.code() == KafkaError._PARTITION_EOF:
            return offset
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise FatalError(f"{self._partition} has no offset {offset}: {error.str()}")
        problem = classified(error, f"reading {self._partition}", self.trouble)
        if isinstance(problem, FatalError):
            raise problem
        return 0
