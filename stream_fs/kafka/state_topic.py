"""A client that reads partitions by position, one at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from stream_fs.errors import FatalError
from stream_fs.kafka.clients import state_consumer
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition, StoredRecord


class KafkaStateLog:
    """See `stream_fs.pipeline.ports.StateLog`.

    With a `reader` that it shares with others, it gives way after every batch, and leaves the
    reader to the next one when it is closed; otherwise it has one of its own.
    """

    def __init__(
        self,
        settings: ClientSettings,
        partition: Partition,
        offsets: OffsetReader,
        reader: StateReader | None = None,
    ) -> None:
        """`partition` is of the state topic; `offsets` may be shared."""
        self._partition = partition
        self._offsets = offsets
        self.connection = offsets.connection
        self._first: int | None = None
        self._shared = reader is not None
        self._reader = reader or StateReader(settings, self.connection)

    def end(self) -> int:
        """The offset behind the last record, open and aborted transactions included."""
        return self._offsets.ends([self._partition])[self._partition]

    def start(self) -> int:
        """The offset of the first record that may still be there."""
        self._first = self._offsets.first(self._partition)
        return self._first

    def scan(self, start: int, end: int) -> Iterator[StoredRecord | None]:
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
                    self.connection.clear()
                    yield StoredRecord(offset, message.key() or b"", message.value())
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
        problem = classify(error, f"reading {self._partition}", self.connection)
        if isinstance(problem, FatalError):
            raise problem
        return 0


_BATCH: Final = 4
"""Messages received at once: parts of snapshots have nearly a megabyte each."""
_WAIT_SECONDS: Final = 0.001
_TIMEOUT_SECONDS: Final = 5.0
"""How long a question waits at most: whoever asks it has something more urgent to do, too."""


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
        self._offsets = offsets.within(_TIMEOUT_SECONDS)
        self._reader = StateReader(settings, offsets.connection, batch=_BATCH, wait=_WAIT_SECONDS)

    def ends(self, topics: Sequence[str]) -> Mapping[Partition, int]:
        """By input partition, the end of its state; three questions for a topic."""
        found: dict[Partition, int] = {}
        for topic in topics:
            state = self._state_topic_of(topic)
            places = [Partition(state, number) for number in range(self._offsets.count(state))]
            ends = self._offsets.ends(places)
            found |= {Partition(topic, place.number): ends[place] for place in places}
        return found

    def log(self, partition: Partition) -> KafkaStateLog:
        """The state of one of them, read by the client that all share."""
        place = Partition(self._state_topic_of(partition.topic), partition.number)
        return KafkaStateLog(self._settings, place, self._offsets, self._reader)

    def close(self) -> None:
        """Let go."""
        self._reader.close()


BATCH: Final = 500
WAIT_SECONDS: Final = 0.01


class StateReader:
    """Made with the first partition that it is placed at, and there until `close`.

    To place it again takes milliseconds, to make another one half a second. So partitions stay
    assigned to it, and all but the one that is read are paused.
    """

    def __init__(
        self,
        settings: ClientSettings,
        connection: ConnectionState,
        *,
        batch: int = BATCH,
        wait: float = WAIT_SECONDS,
    ) -> None:
        """Up to `batch` messages are received at once, after a wait of so many seconds at most."""
        self._settings = settings
        self.connection = connection
        self._batch = batch
        self._wait = wait
        self._consumer: Consumer | None = None
        self._assigned: set[Partition] = set()
        self._at: Partition | None = None

    def place(self, partition: Partition, position: int) -> None:
        """Deliver from this offset on."""
        if self._at != partition:
            self.rest()
        where = TopicPartition(partition.topic, partition.number, position)
        with translate_errors(f"reading {partition} from {position}", self.connection):
            if self._consumer is None:
                self._consumer = state_consumer(self._settings, self.connection)
            if partition in self._assigned:
                self._seek(self._consumer, where)
            else:
                self._consumer.incremental_assign([where])
                self._assigned.add(partition)
        self._at = partition

    def receive(self) -> list[Message]:
        """What there is of the partition, events in place of messages included."""
        assert self._consumer is not None
        with translate_errors(f"reading {self._at}", self.connection):
            # The first of them is waited for; a whole batch would be waited for to the end.
            received = self._consumer.consume(1, self._wait)
            if received:
                received += self._consumer.consume(self._batch - 1, 0)
        # What was on its way when another partition was left may still come.
        here = (self._at, (None, None))
        return [found for found in received if (found.topic(), found.partition()) in here]

    def rest(self) -> None:
        """Deliver nothing until it is placed again, and fetch nothing either."""
        if self._consumer is not None and self._at is not None:
            with translate_errors(f"leaving {self._at}", self.connection):
                self._consumer.pause([TopicPartition(self._at.topic, self._at.number)])
        self._at = None

    def close(self) -> None:
        """Let go."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._at = None, None
        self._assigned.clear()

    @staticmethod
    def _seek(consumer: Consumer, where: TopicPartition) -> None:
        try:
            # In this order: a seek wakes up the fetching thread, which sleeps after a pause.
            consumer.resume([where])
            consumer.seek(where)  # to assign again would pause for a second
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError._STATE:
                raise
            # The client has not taken it up yet, or has dropped it after an error.
            consumer.incremental_unassign([where])
            consumer.incremental_assign([where])
