"""Where partitions begin and end: questions with an end, whichever broker is gone.

A client remembers who leads a partition, and where that broker is gone, its own calls for offsets
wait for it far beyond the time that they were given, some of them for ever (librdkafka issues 2588
and 1869). So the leaders are asked for first, each attempt is short, and none is waited for longer.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from typing import Final

from confluent_kafka import (
    ConsumerGroupTopicPartitions,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._listoffsets import OffsetSpec

from stream_fs.errors import RetriableError
from stream_fs.kafka.clients import Progress, admin_client, unobserved
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition

_ATTEMPT_SECONDS: Final = 5.0
"""How long one attempt waits; the next one may find that another broker leads."""
_SPARE_SECONDS: Final = 0.5
"""Added to the client's own timeout, whose error says more, so that it comes first."""
_EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # it has no types
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no types


class OffsetReader:
    """Asks through one client, which all that ask share; `connection` is that client's."""

    def __init__(
        self,
        admin: AdminClient,
        connection: ConnectionState,
        timeout: float,
        progress: Progress = unobserved,
    ) -> None:
        self._admin = admin
        self.connection = connection
        self._timeout = timeout
        self.progress = progress

    @classmethod
    def connect(cls, settings: ClientSettings, progress: Progress = unobserved) -> OffsetReader:
        """With a client of its own."""
        connection = ConnectionState()
        return cls(admin_client(settings, connection), connection, settings.timeout, progress)

    def within(self, seconds: float) -> OffsetReader:
        """The same, for those who cannot wait longer than so many seconds."""
        return OffsetReader(
            self._admin, self.connection, min(seconds, self._timeout), self.progress
        )

    def first(self, partition: Partition) -> int:
        """The offset of the first record that may still be there."""
        return self._ask([partition], _EARLIEST)[partition]

    def ends(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        """The offsets behind the last records, open and aborted transactions included.

        All of one topic, for its leaders are asked for once.
        """
        return self._ask(partitions, _LATEST)

    def last_stable_offset(self, partition: Partition) -> int:
        """The offset behind the last record that is not of an open transaction."""
        return self.last_stable_offsets([partition])[partition]

    def last_stable_offsets(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        """The same of several, all of one topic."""
        return self._ask(partitions, _LATEST, IsolationLevel.READ_COMMITTED)

    def committed(self, group: str, partition: Partition) -> int | None:
        """The offset that a group has committed, if it has."""
        self.progress()
        doing = f"asking for the offset of {partition} in group {group}"
        asked = ConsumerGroupTopicPartitions(group, [TopicPartition(*partition)])
        with translate_errors(doing, self.connection):
            answers = self._admin.list_consumer_group_offsets(
                [asked], request_timeout=self._timeout
            )
            try:
                found = answers[group].result(self._timeout + _SPARE_SECONDS)
            except TimeoutError as reason:
                raise RetriableError(f"no answer within {self._timeout:g} s") from reason
        (answer,) = found.topic_partitions or [TopicPartition(*partition)]
        if answer.error is not None:
            raise classify(answer.error, doing, self.connection)
        return answer.offset if answer.offset >= 0 else None

    def count(self, topic: str) -> int:
        """How many partitions a topic has."""
        self.progress()
        with translate_errors(f"looking for the partitions of {topic}", self.connection):
            return self._look(topic, self._timeout)

    def _ask(
        self,
        partitions: Sequence[Partition],
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[Partition, int]:
        self.progress()
        deadline = time.monotonic() + self._timeout
        places = ", ".join(map(str, partitions[:3])) + (", …" if len(partitions) > 3 else "")
        with translate_errors(f"asking for the offsets of {places}", self.connection):
            while True:
                seconds = max(0.1, min(deadline - time.monotonic(), _ATTEMPT_SECONDS))
                try:
                    found = self._attempt(partitions, spec, isolation, seconds)
                except TimeoutError:
                    if time.monotonic() >= deadline:
                        raise KafkaException(KafkaError(KafkaError._TIMED_OUT)) from None
                else:
                    self.connection.clear()
                    return found

    def _attempt(
        self,
        partitions: Sequence[Partition],
        spec: OffsetSpec,
        isolation: IsolationLevel,
        seconds: float,
    ) -> dict[Partition, int]:
        """Raises TimeoutError where there is no answer in time."""
        deadline = time.monotonic() + seconds
        try:
            topic, count = partitions[0].topic, self._look(partitions[0].topic, seconds)
            if max(place.number for place in partitions) >= count:
                reason = f"{topic} has {count} partitions"
                raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, reason))
            answers = self._admin.list_offsets(
                {TopicPartition(place.topic, place.number): spec for place in partitions},
                isolation_level=isolation,
                request_timeout=seconds,
            )
            return {
                Partition(where.topic, where.partition): int(
                    answer.result(max(0.0, deadline - time.monotonic()) + _SPARE_SECONDS).offset
                )
                for where, answer in answers.items()
            }
        except KafkaException as exception:
            if exception.args[0].code() in (KafkaError._TIMED_OUT, KafkaError.REQUEST_TIMED_OUT):
                raise TimeoutError from exception
            raise
        finally:
            self._admin.poll(0)  # what it has to say of its connection

    def _look(self, topic: str, seconds: float) -> int:
        """Let the client learn who leads the partitions of a topic; how many there are."""
        found = self._admin.list_topics(topic, seconds).topics[topic]
        if found.error is not None:
            raise KafkaException(found.error)
        return len(found.partitions)
