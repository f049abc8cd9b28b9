"""Reading the committed records of partitions by position: of the state topic, or of an input."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, Message, TopicPartition

from stream_fs.errors import FatalError
from stream_fs.kafka import librdkafka
from stream_fs.kafka.clients import state_consumer
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition, StoredRecord

_BATCH: Final = 500
"""Messages received at once."""
_WAIT_SECONDS: Final = 0.01
"""Longest wait of one receive."""
_SHARED_BATCH: Final = 4
"""The same of a shared reader: parts of snapshots have nearly a megabyte each."""
_SHARED_WAIT_SECONDS: Final = 0.001
_SHARED_TIMEOUT_SECONDS: Final = 5.0
"""Longest wait for offsets on behalf of a shared reader, whose owner has other work."""


class KafkaStateLog:
    """See `stream_fs.pipeline.ports.StateLog`.

    With a `reader` that is shared with other logs, a scan yields None after every batch, and
    `close` leaves the reader to the next log; otherwise the log has a reader of its own.
    """

    def __init__(
        self,
        settings: ClientSettings,
        partition: Partition,
        offsets: OffsetReader,
        reader: PositionReader | None = None,
    ) -> None:
        """`partition` is the one to read, in the state topic for a state; `offsets` is shared."""
        self._partition = partition
        self._offsets = offsets
        self.connection = offsets.connection
        self._start: int | None = None
        self._shared = reader is not None
        self._reader = reader or PositionReader(settings, self.connection)

    def end(self) -> int:
        """The offset behind the last record, open and aborted transactions included."""
        return self._offsets.ends([self._partition])[self._partition]

    def start(self) -> int:
        """The offset of the first record that may still be there."""
        self._start = self._offsets.first(self._partition)
        return self._start

    def scan(self, start: int, end: int) -> Iterator[StoredRecord | None]:
        """The committed records in [start, end), in order; None while none has arrived."""
        # The start moves only where records are deleted: it is not read for every scan.
        position = max(start, self.start() if self._start is None else self._start)
        if position >= end:
            return
        self._reader.seek(self._partition, position)
        while position < end:
            batch = self._reader.receive()
            if not batch:
                yield None
            for message in batch:
                offset = message.offset()
                assert offset is not None
                if (error := message.error()) is not None:
                    # Everything before the last stable offset has been delivered, even where its
                    # last offsets are of aborted records and markers, which never are.
                    position = max(position, self._position_of(error, offset))
                elif offset >= end:
                    return
                else:
                    self.connection.clear()
                    yield StoredRecord(offset, message.key() or b"", message.value())
                    position = offset + 1
            if batch and self._shared and position < end:
                yield None

    def close(self) -> None:
        """Release the reader."""
        if self._shared:
            self._reader.pause()
        else:
            self._reader.close()

    def _position_of(self, error: KafkaError, offset: int) -> int:
        """The position that the end of a partition reports; 0 for a transient error."""
        if error.code() == KafkaError._PARTITION_EOF:
            return offset
        if error.code() == KafkaError._AUTO_OFFSET_RESET:
            raise FatalError(f"{self._partition} has no offset {offset}: {error.str()}")
        problem = classify(error, f"reading {self._partition}", self.connection)
        if isinstance(problem, FatalError):
            raise problem
        return 0


class KafkaStateLogReader:
    """See `stream_fs.pipeline.ports.StateLogReader`."""

    def __init__(
        self,
        settings: ClientSettings,
        state_topic_of: Callable[[str], str],
        offsets: OffsetReader,
    ) -> None:
        self._settings = settings
        self._state_topic_of = state_topic_of
        self._offsets = offsets.within(_SHARED_TIMEOUT_SECONDS)
        self._reader = PositionReader(
            settings, offsets.connection, batch=_SHARED_BATCH, wait=_SHARED_WAIT_SECONDS
        )

    def ends(self, topics: Sequence[str]) -> Mapping[Partition, int]:
        """The ends of the states by input partition; three requests per topic."""
        found: dict[Partition, int] = {}
        for topic in topics:
            state = self._state_topic_of(topic)
            places = [Partition(state, number) for number in range(self._offsets.count(state))]
            ends = self._offsets.ends(places)
            found |= {Partition(topic, place.number): ends[place] for place in places}
        return found

    def log(self, partition: Partition) -> KafkaStateLog:
        """The state of one of them, read by the shared reader."""
        place = Partition(self._state_topic_of(partition.topic), partition.number)
        return KafkaStateLog(self._settings, place, self._offsets, self._reader)

    def close(self) -> None:
        """Release the reader."""
        self._reader.close()


class PositionReader:
    """A consumer that reads one partition at a time, created by the first `seek`.

    A seek takes milliseconds, creating a consumer half a second. So partitions stay assigned to it,
    and all but the one that is read are paused.
    """

    def __init__(
        self,
        settings: ClientSettings,
        connection: ConnectionState,
        *,
        batch: int = _BATCH,
        wait: float = _WAIT_SECONDS,
    ) -> None:
        """`receive` returns up to `batch` messages, after at most `wait` seconds."""
        self._settings = settings
        self.connection = connection
        self._batch = batch
        self._wait = wait
        self._consumer: Consumer | None = None
        self._assigned: set[Partition] = set()
        self._current: Partition | None = None

    def seek(self, partition: Partition, position: int) -> None:
        """Deliver this partition alone, from this offset on."""
        if self._current != partition:
            self.pause()
        place = TopicPartition(*partition, position)
        with translate_errors(f"reading {partition} from {position}", self.connection):
            if self._consumer is None:
                self._consumer = state_consumer(self._settings, self.connection)
            # To assign it again would pause for a second.
            if partition not in self._assigned:
                self._consumer.incremental_assign([place])
                self._assigned.add(partition)
            elif not librdkafka.seek(self._consumer, place):
                self._consumer.incremental_unassign([place])
                self._consumer.incremental_assign([place])
        self._current = partition

    def receive(self) -> list[Message]:
        """Messages and events of the partition, as soon as there are some."""
        assert self._consumer is not None
        with translate_errors(f"reading {self._current}", self.connection):
            received = librdkafka.consume(self._consumer, self._batch, self._wait, gather=0)
        # Messages of the partition that was read before may still arrive.
        current = (self._current, (None, None))
        return [found for found in received if (found.topic(), found.partition()) in current]

    def pause(self) -> None:
        """Fetch and deliver nothing until the next `seek`."""
        if self._consumer is not None and self._current is not None:
            with translate_errors(f"pausing {self._current}", self.connection):
                self._consumer.pause([TopicPartition(*self._current)])
        self._current = None

    def close(self) -> None:
        """Close the consumer."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._current = None, None
        self._assigned.clear()
