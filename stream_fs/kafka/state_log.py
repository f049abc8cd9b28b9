"""One partition of the state topic, read by position.

Its end is asked for with isolation level read_uncommitted: the end that a reader of committed
records sees lies before the first open transaction, and would hide commits behind it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from confluent_kafka import Consumer, IsolationLevel, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from stream_fs.errors import FatalError
from stream_fs.kafka.clients import state_consumer
from stream_fs.kafka.errors import Trouble, classified, translated
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition, Stored

_EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # it has no types
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no types
_BATCH: Final = 500
_WAIT_SECONDS: Final = 0.01
"""How long a scan waits before it lets its caller do something else."""


class KafkaStateLog:
    """See `stream_fs.pipeline.ports.StateLog`.

    The reader is made with the first scan, and stays until `close`: to place it again takes
    milliseconds, to make another one half a second.
    """

    def __init__(
        self,
        settings: ClientSettings,
        partition: Partition,
        admin: AdminClient,
        trouble: Trouble,
    ) -> None:
        """`partition` is of the state topic; `admin` and its `trouble` may be shared."""
        self._settings = settings
        self._partition = partition
        self._admin = admin
        self.trouble = trouble
        self._consumer: Consumer | None = None

    def end(self) -> int:
        """The offset behind the last record, open and aborted transactions included."""
        return self._offset(_LATEST)

    def start(self) -> int:
        """The offset of the first record that may still be there."""
        return self._offset(_EARLIEST)

    def scan(self, start: int, end: int) -> Iterator[Stored | None]:
        """The committed records in [start, end), in order; None where one has to wait."""
        position = max(start, self.start())
        if position >= end:
            return
        consumer = self._placed(position)
        while position < end:
            with translated(f"reading {self._partition}", self.trouble):
                batch = consumer.consume(_BATCH, _WAIT_SECONDS)
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

    def close(self) -> None:
        """Let go."""
        if self._consumer is not None:
            self._consumer.close()
            self._consumer = None

    def _offset(self, spec: OffsetSpec) -> int:
        where = TopicPartition(self._partition.topic, self._partition.number)
        with translated(f"asking for the offsets of {self._partition}", self.trouble):
            (answer,) = self._admin.list_offsets(
                {where: spec},
                isolation_level=IsolationLevel.READ_UNCOMMITTED,
                request_timeout=self._settings.patience,
            ).values()
            try:
                offset = answer.result().offset
            except KafkaException as exception:
                self._admin.poll(0)  # what it has to say of its connection
                if exception.args[0].code() == KafkaError._NOENT:
                    self._explain()
                raise
        self.trouble.clear()
        return int(offset)

    def _explain(self) -> None:
        """Raise why there is no leader to be asked, if the broker says so."""
        topic = self._partition.topic
        found = self._admin.list_topics(topic, self._settings.patience).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)

    def _placed(self, position: int) -> Consumer:
        """The reader, about to deliver from this offset on."""
        where = TopicPartition(self._partition.topic, self._partition.number, position)
        with translated(f"reading {self._partition} from {position}", self.trouble):
            if self._consumer is None:
                self._consumer = state_consumer(self._settings, self.trouble)
                self._consumer.assign([where])
            else:
                self._consumer.seek(where)  # to assign again would pause for a second
        return self._consumer

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
