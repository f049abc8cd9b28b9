"""One partition of the state topic, read by position.

Its end is asked for with isolation level read_uncommitted: the end that a reader of committed
records sees lies before the first open transaction, and would hide commits behind it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final

from confluent_kafka import IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from stream_fs.errors import FatalError
from stream_fs.kafka.errors import Trouble, classified, translated
from stream_fs.kafka.settings import ClientSettings
from stream_fs.kafka.state_reader import StateReader
from stream_fs.pipeline.ports import Partition, Stored

EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # it has no types
LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no types
_MOVED: Final = {
    KafkaError._NOENT,
    KafkaError.FENCED_LEADER_EPOCH,
    KafkaError.UNKNOWN_LEADER_EPOCH,
    KafkaError.NOT_LEADER_FOR_PARTITION,
}


class KafkaStateLog:
    """See `stream_fs.pipeline.ports.StateLog`.

    With a `reader` that it shares with others, it gives way after every batch, and leaves the
    reader to the next one when it is closed; otherwise it has one of its own.
    """

    def __init__(
        self,
        settings: ClientSettings,
        partition: Partition,
        admin: AdminClient,
        trouble: Trouble,
        reader: StateReader | None = None,
    ) -> None:
        """`partition` is of the state topic; `admin` and its `trouble` may be shared."""
        self._settings = settings
        self._partition = partition
        self._admin = admin
        self.trouble = trouble
        self._shared = reader is not None
        self._reader = reader or StateReader(settings, trouble)

    def end(self) -> int:
        """The offset behind the last record, open and aborted transactions included."""
        return self._offset(LATEST)

    def start(self) -> int:
        """The offset of the first record that may still be there."""
        return self._offset(EARLIEST)

    def scan(self, start: int, end: int) -> Iterator[Stored | None]:
        """The committed records in [start, end), in order; None where one has to wait."""
        position = max(start, self.start())
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

    def _offset(self, spec: OffsetSpec) -> int:
        place = self._partition
        return offsets(self._admin, [place], spec, self._settings.patience, self.trouble)[place]

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


def offsets(
    admin: AdminClient,
    partitions: Sequence[Partition],
    spec: OffsetSpec,
    patience: float,
    trouble: Trouble,
) -> dict[Partition, int]:
    """The first or the last offsets of partitions, open transactions included; one question."""
    asked = {TopicPartition(place.topic, place.number): spec for place in partitions}
    found: dict[Partition, int] = {}
    answers = admin.list_offsets(
        asked, isolation_level=IsolationLevel.READ_UNCOMMITTED, request_timeout=patience
    )
    for where, answer in answers.items():
        place = Partition(where.topic, where.partition)
        with translated(f"asking for the offsets of {place}", trouble):
            try:
                found[place] = int(answer.result().offset)
            except KafkaException as exception:
                admin.poll(0)  # what it has to say of its connection
                if exception.args[0].code() in _MOVED:
                    _look_again(admin, place.topic, patience)
                raise
    trouble.clear()
    return found


def _look_again(admin: AdminClient, topic: str, patience: float) -> None:
    """Ask who leads the partitions, which the client remembers from before a broker's restart.

    Raises why nobody does, if the broker says so.
    """
    found = admin.list_topics(topic, patience).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
