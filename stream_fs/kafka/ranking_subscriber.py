"""Reading committed rankings, outside of any group."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Final, TypeAlias, cast

from confluent_kafka import KafkaError
from confluent_kafka import Message as ClientMessage

from stream_fs.errors import FatalError, RetriableError
from stream_fs.kafka import librdkafka
from stream_fs.kafka.clients import ranking_consumer, topic_partitions
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.librdkafka import LOGGER
from stream_fs.kafka.message_batch import batches_by_partition, without_events
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition
from stream_fs.records import Message

_BATCH: Final = 500
_RETRY_SECONDS: Final = 0.1
"""Between two requests to a broker that cannot answer yet."""
_WINDOWS: Final = (512, 4096, 32_768)
"""Offsets to search for the newest messages, from the end backwards."""

_Positions: TypeAlias = Mapping[Partition, int]


class RankingSubscriber:
    """Reads every partition of a topic, from its beginning or from the newest messages on.

    `connection.error` says why there is no connection, None when there is one.
    """

    def __init__(self, settings: ClientSettings, topic: str, partitions: int) -> None:
        self._timeout = settings.timeout
        self._partitions = [Partition(topic, number) for number in range(partitions)]
        self._wanted: dict[Partition, int] = {}
        self._ends: dict[Partition, int] = {}  # last stable offsets that were reached
        self.connection = ConnectionState()
        self._consumer = ranking_consumer(settings, self.connection)

    def from_beginning(self) -> None:
        """Deliver everything that the topic contains."""
        self._assign({partition: self._bounds(partition)[0] for partition in self._partitions})

    def from_newest(self, keys: Collection[bytes]) -> list[Message]:
        """The newest message of every key, oldest first; later messages are delivered by `poll`.

        The topic is read backwards until there is one for each of `keys`, within limits; messages
        with other keys that are found on the way are included.
        """
        bounds = {partition: self._bounds(partition) for partition in self._partitions}
        ends = {partition: end for partition, (_, end) in bounds.items()}
        newest: dict[bytes | None, Message] = {}
        below = ends
        for width in _WINDOWS:
            above = {
                partition: max(first, below[partition] - width)
                for partition, (first, _) in bounds.items()
            }
            newest = {message.key: message for message in self._between(above, below)} | newest
            if newest.keys() >= set(keys) or all(above[p] == bounds[p][0] for p in above):
                break
            below = above
        self._assign(ends)
        return sorted(newest.values(), key=lambda message: (message.timestamp, message.offset))

    def poll(self, timeout: float) -> list[Message]:
        """New messages, in the order of each partition."""
        with translate_errors("reading rankings", self.connection):
            received = librdkafka.consume(self._consumer, _BATCH, timeout)
        batches = batches_by_partition(without_events(received, self._handle_event), self._wanted)
        for partition, batch in batches.items():
            self.connection.clear()
            self._wanted[partition] = batch.offsets()[-1] + 1
        return [message for batch in batches.values() for message in batch]

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _between(self, start: _Positions, end: _Positions) -> list[Message]:
        """All messages in [start, end)."""
        self._assign({place: at for place, at in start.items() if at < end[place]})
        found: list[Message] = []
        while behind := [place for place in self._wanted if self._position(place) < end[place]]:
            before = [self._position(place) for place in behind]
            found += self.poll(self._timeout)
            if before == [self._position(place) for place in behind]:
                raise FatalError(
                    f"reading rankings: no message arrived within {self._timeout:g} s; "
                    f"{self.connection.error or 'the broker is slow'}"
                )
        return [
            message
            for message in found
            if message.offset < end[Partition(message.topic, message.partition)]
        ]

    def _position(self, partition: Partition) -> int:
        """Behind the last message, and behind the markers after it that are never delivered."""
        return max(self._wanted[partition], self._ends.get(partition, 0))

    def _bounds(self, partition: Partition) -> tuple[int, int]:
        deadline = time.monotonic() + self._timeout
        (place,) = topic_partitions({partition: 0})
        while True:
            try:
                with translate_errors(f"reading the offsets of {partition}", self.connection):
                    return self._consumer.get_watermark_offsets(place, self._timeout)
            except RetriableError:  # a new topic may have no leader yet
                if time.monotonic() > deadline:
                    raise
            time.sleep(_RETRY_SECONDS)

    def _assign(self, positions: _Positions) -> None:
        self._wanted, self._ends = dict(positions), {}
        with translate_errors("reading rankings", self.connection):
            self._consumer.assign(topic_partitions(positions))

    def _handle_event(self, message: ClientMessage) -> None:
        error = cast(KafkaError, message.error())
        if error.code() == KafkaError._PARTITION_EOF:
            partition = Partition(cast(str, message.topic()), cast(int, message.partition()))
            self._ends[partition] = cast(int, message.offset())
            return
        problem = classify(error, "reading rankings", self.connection)
        if isinstance(problem, FatalError):
            raise problem
        LOGGER.warning("%s", problem)
