"""All state partitions of a stream, read one after the other by one client."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from stream_fs.kafka.offsets import Offsets
from stream_fs.kafka.settings import ClientSettings
from stream_fs.kafka.state_log import KafkaStateLog
from stream_fs.kafka.state_reader import StateReader
from stream_fs.pipeline.ports import Partition

_BATCH: Final = 4
"""Messages received at once: parts of snapshots have nearly a megabyte each."""
_WAIT_SECONDS: Final = 0.001
_PATIENCE_SECONDS: Final = 5.0
"""How long a question waits at most: whoever asks it has something more urgent to do, too."""


class KafkaStateLogs:
    """See `stream_fs.pipeline.ports.StateLogs`."""

    def __init__(
        self,
        settings: ClientSettings,
        state_topic_of: Callable[[str], str],
        offsets: Offsets,
    ) -> None:
        self._settings = settings
        self._state_topic_of = state_topic_of
        self._offsets = offsets.within(_PATIENCE_SECONDS)
        self._reader = StateReader(settings, offsets.trouble, batch=_BATCH, wait=_WAIT_SECONDS)

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
