"""The rankings as a subscriber gets them: committed ones only, outside of any group."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Final, cast

from confluent_kafka import KafkaError, TopicPartition
from confluent_kafka import Message as Received

from stream_fs.errors import FatalError, RetriableError
from stream_fs.kafka.clients import LOGGER, ranking_consumer
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.message_batch import delivered, without_events
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition
from stream_fs.records import Message

_BATCH: Final = 500
_GATHER_SECONDS: Final = 0.005
"""How long a call waits for more once a message is there."""
_PAUSE_SECONDS: Final = 0.1
"""Between two questions to a broker that cannot answer yet."""
_WINDOWS: Final = (512, 4096, 32_768)
"""Offsets that are looked at for the newest messages, from the end backwards."""

Offsets = Mapping[Partition, int]


class RankingSubscriber:
    """Reads every partition of a topic, on from a place that it is told.

    `connection.error` says why there is no connection, None when there is one.
    """

    def __init__(self, settings: ClientSettings, topic: str, partitions: int) -> None:
        self._timeout = settings.timeout
        self._places = [Partition(topic, number) for number in range(partitions)]
        self._wanted: dict[Partition, int] = {}
        self._ends: dict[Partition, int] = {}  # what is decided was seen up to here
        self.connection = ConnectionState()
        self._consumer = ranking_consumer(settings, self.connection)

    def from_beginning(self) -> None:
        """Deliver everything that the topic holds."""
        self._place({place: self._bounds(place)[0] for place in self._places})

    def from_newest(self, keys: Collection[bytes]) -> list[Message]:
        """The newest message of every key, oldest first; what comes after them is delivered.

        The topic is read backwards until there is one for each of `keys`, but not for ever; others
        that are met on the way are among them.
        """
        bounds = {place: self._bounds(place) for place in self._places}
        ends = {place: end for place, (_, end) in bounds.items()}
        newest: dict[bytes | None, Message] = {}
        below = ends
        for width in _WINDOWS:
            above = {
                place: max(first, below[place] - width) for place, (first, _) in bounds.items()
            }
            newest = {message.key: message for message in self._between(above, below)} | newest
            if newest.keys() >= set(keys) or all(above[p] == bounds[p][0] for p in above):
                break
            below = above
        self._place(ends)
        return sorted(newest.values(), key=lambda message: (message.timestamp, message.offset))

    def poll(self, timeout: float) -> list[Message]:
        """What has come, in the order of each partition."""
        with translate_errors("reading rankings", self.connection):
            first = self._consumer.poll(timeout)
            received = []
            if first is not None:
                received = [first, *self._consumer.consume(_BATCH, _GATHER_SECONDS)]
        batches = delivered(without_events(received, self._event), self._wanted)
        for place, batch in batches.items():
            self.connection.clear()
            self._wanted[place] = batch.offsets()[-1] + 1
        return [message for batch in batches.values() for message in batch]

    def close(self) -> None:
        """Let go."""
        self._consumer.close()

    def _between(self, start: Offsets, end: Offsets) -> list[Message]:
        """All messages from `start` to before `end`."""
        self._place({place: at for place, at in start.items() if at < end[place]})
        found: list[Message] = []
        while behind := [place for place in self._wanted if self._seen(place) < end[place]]:
            before = [self._seen(place) for place in behind]
            found += self.poll(self._timeout)
            if before == [self._seen(place) for place in behind]:
                raise FatalError(
                    f"reading rankings: nothing came within {self._timeout:g} s; "
                    f"{self.connection.error or 'the broker is slow'}"
                )
        return [message for message in found if message.offset < end[_of(message)]]

    def _seen(self, place: Partition) -> int:
        """Behind the last message, or behind what follows it and is never delivered."""
        return max(self._wanted[place], self._ends.get(place, 0))

    def _bounds(self, place: Partition) -> tuple[int, int]:
        where, until = TopicPartition(*place), time.monotonic() + self._timeout
        while True:
            try:
                with translate_errors(f"asking for the offsets of {place}", self.connection):
                    return self._consumer.get_watermark_offsets(where, self._timeout)
            except RetriableError:  # a topic that was just made may have no leader yet
                if time.monotonic() > until:
                    raise
            time.sleep(_PAUSE_SECONDS)

    def _place(self, places: Offsets) -> None:
        self._wanted, self._ends = dict(places), {}
        with translate_errors("reading rankings", self.connection):
            self._consumer.assign(
                [TopicPartition(*place, offset) for place, offset in places.items()]
            )

    def _event(self, message: Received) -> None:
        """What the client tells in place of a message."""
        error = cast(KafkaError, message.error())
        if error.code() == KafkaError._PARTITION_EOF:
            place = Partition(cast(str, message.topic()), cast(int, message.partition()))
            self._ends[place] = cast(int, message.offset())
            return
        problem = classify(error, "reading rankings", self.connection)
        if isinstance(problem, FatalError):
            raise problem
        LOGGER.warning("%s", problem)


def _of(message: Message) -> Partition:
    return Partition(message.topic, message.partition)
