"""The Kafka implementation of the pipeline's transport."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stream_fs.kafka.clients import Heartbeat, no_heartbeat
from stream_fs.kafka.consumer import KafkaConsumer
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.kafka.publisher import KafkaPublisher
from stream_fs.kafka.settings import ClientSettings
from stream_fs.kafka.state_topic import KafkaStateLog, KafkaStateLogReader
from stream_fs.pipeline.ports import Assignment, Partition


class KafkaTransport:
    """See `stream_fs.pipeline.ports.Transport`.

    The transactional ids consist of the group, the name of the `stream`, and the partition.
    `state_topic_of` returns the name of an input topic's state topic, which has as many partitions.
    `chunk_records` is the usual size of a chunk, for the size of polls.
    """

    def __init__(
        self,
        settings: ClientSettings,
        stream: str,
        state_topic_of: Callable[[str], str],
        heartbeat: Heartbeat = no_heartbeat,
        chunk_records: int = 1,
    ) -> None:
        self._settings = settings
        self._stream = stream
        self._state_topic_of = state_topic_of
        self._heartbeat = heartbeat
        self._chunk_records = chunk_records
        self._offsets = OffsetReader.connect(settings, heartbeat)

    def input(self, topics: Sequence[str], assignment: Assignment) -> KafkaConsumer:
        """Join the group and subscribe."""
        return KafkaConsumer(
            self._settings,
            topics,
            assignment,
            self._offsets,
            self._chunk_records,
            self._heartbeat,
        )

    def publisher(self, partition: Partition, *, legacy: bool = False) -> KafkaPublisher:
        """The publisher of this input partition, not acquired yet."""
        return KafkaPublisher(
            self._settings, self._transactional_id(str(partition), legacy=legacy), self._heartbeat
        )

    def group_offset(self, partition: Partition) -> int | None:
        """The offset that the group has committed, if any."""
        return self._offsets.committed(self._settings.group, partition)

    def merge_publisher(self, *, legacy: bool = False) -> KafkaPublisher:
        """The publisher of merged rankings, not acquired yet."""
        return KafkaPublisher(
            self._settings, self._transactional_id("merge", legacy=legacy), self._heartbeat
        )

    def state_log(self, partition: Partition) -> KafkaStateLog:
        """The state of this input partition."""
        place = Partition(self._state_topic_of(partition.topic), partition.number)
        return KafkaStateLog(self._settings, place, self._offsets)

    def state_log_reader(self) -> KafkaStateLogReader:
        """The states of all input partitions."""
        return KafkaStateLogReader(self._settings, self._state_topic_of, self._offsets)

    def input_log(self, partition: Partition) -> KafkaStateLog:
        """The records of the input partition itself, read outside of the group."""
        return KafkaStateLog(self._settings, partition, self._offsets)

    def _transactional_id(self, owned: str, *, legacy: bool) -> str:
        """A transactional id; in releases that write legacy states, without the stream."""
        group = self._settings.group
        return f"{group}/{owned}" if legacy else f"{group}/{self._stream}/{owned}"
