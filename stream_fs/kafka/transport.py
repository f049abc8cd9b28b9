"""All of it: a broker, as the pipeline sees it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stream_fs.kafka.clients import Progress, unobserved
from stream_fs.kafka.consumer import KafkaConsumer
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.kafka.publisher import KafkaPublisher
from stream_fs.kafka.settings import ClientSettings
from stream_fs.kafka.state_topic import KafkaStateLog, KafkaStateLogReader
from stream_fs.pipeline.ports import Assignment, Partition


class KafkaTransport:
    """See `stream_fs.pipeline.ports.Transport`.

    `stream` is the name of the stream, part of the transactional ids as is the group.
    `state_topic_of` gives the name of the state topic of an input topic; both have as many
    partitions.
    """

    def __init__(
        self,
        settings: ClientSettings,
        stream: str,
        state_topic_of: Callable[[str], str],
        progress: Progress = unobserved,
    ) -> None:
        self._settings = settings
        self._stream = stream
        self._state_topic_of = state_topic_of
        self._progress = progress
        self._offsets = OffsetReader.connect(settings, progress)

    def input(self, topics: Sequence[str], assignment: Assignment) -> KafkaConsumer:
        """Join the group and subscribe."""
        return KafkaConsumer(self._settings, topics, assignment, self._offsets)

    def publisher(self, partition: Partition, *, legacy: bool = False) -> KafkaPublisher:
        """A publisher for this input partition, which owns nothing yet."""
        identity = self._id(str(partition), legacy=legacy)
        return KafkaPublisher(self._settings, identity, self._progress)

    def group_offset(self, partition: Partition) -> int | None:
        """The offset that the group has committed."""
        return self._offsets.committed(self._settings.group, partition)

    def merge_publisher(self, *, legacy: bool = False) -> KafkaPublisher:
        """The publisher of merged rankings, which owns nothing yet."""
        return KafkaPublisher(self._settings, self._id("merge", legacy=legacy), self._progress)

    def state_log(self, partition: Partition) -> KafkaStateLog:
        """The state of this input partition."""
        place = Partition(self._state_topic_of(partition.topic), partition.number)
        return KafkaStateLog(self._settings, place, self._offsets)

    def state_log_reader(self) -> KafkaStateLogReader:
        """The states of all input partitions."""
        return KafkaStateLogReader(self._settings, self._state_topic_of, self._offsets)

    def input_log(self, partition: Partition) -> KafkaStateLog:
        """The input partition itself, outside of the group."""
        return KafkaStateLog(self._settings, partition, self._offsets)

    def _id(self, owned: str, *, legacy: bool) -> str:
        """A transactional id; in releases that write legacy states, it has no stream."""
        group = self._settings.group
        return f"{group}/{owned}" if legacy else f"{group}/{self._stream}/{owned}"
