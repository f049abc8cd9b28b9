"""The offsets at which partitions begin and end, read within a timeout even during an outage.

Every attempt first refreshes the leaders, see `librdkafka.refresh_leaders`, and is short; the next
one may find another leader.
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
from stream_fs.kafka import librdkafka
from stream_fs.kafka.clients import Heartbeat, admin_client, no_heartbeat
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition

_ATTEMPT_SECONDS: Final = 5.0
"""Timeout of one attempt."""
_SPARE_SECONDS: Final = 0.5
"""Added to the client's own timeout, whose error says more."""
_EARLIEST: Final = OffsetSpec.earliest()  # type: ignore[no-untyped-call]  # it has no types
_LATEST: Final = OffsetSpec.latest()  # type: ignore[no-untyped-call]  # it has no types


class OffsetReader:
    """Reads offsets with one client, which may be shared; `connection` is that client's."""

    def __init__(
        self,
        admin: AdminClient,
        connection: ConnectionState,
        timeout: float,
        heartbeat: Heartbeat = no_heartbeat,
    ) -> None:
        self._admin = admin
        self.connection = connection
        self._timeout = timeout
        self._heartbeat = heartbeat

    @classmethod
    def connect(cls, settings: ClientSettings, heartbeat: Heartbeat = no_heartbeat) -> OffsetReader:
        """A reader with a client of its own."""
        connection = ConnectionState()
        return cls(admin_client(settings, connection), connection, settings.timeout, heartbeat)

    def within(self, seconds: float) -> OffsetReader:
        """A reader with the same client, and at most this timeout."""
        return OffsetReader(
            self._admin, self.connection, min(seconds, self._timeout), self._heartbeat
        )

    def first(self, partition: Partition) -> int:
        """The offset of the first record that may still be there."""
        return self._read([partition], _EARLIEST)[partition]

    def ends(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        """The offsets behind the last records, open and aborted transactions included.

        The partitions are of one topic, whose leaders are refreshed once.
        """
        return self._read(partitions, _LATEST)

    def last_stable_offset(self, partition: Partition) -> int:
        """The offset behind the last record before any open transaction."""
        return self.last_stable_offsets([partition])[partition]

    def last_stable_offsets(self, partitions: Sequence[Partition]) -> Mapping[Partition, int]:
        """The last stable offsets of partitions of one topic."""
        return self._read(partitions, _LATEST, IsolationLevel.READ_COMMITTED)

    def committed(self, group: str, partition: Partition) -> int | None:
        """The offset that a group has committed, if any."""
        self._heartbeat()
        doing = f"reading the offset of {partition} in group {group}"
        request = ConsumerGroupTopicPartitions(group, [TopicPartition(*partition)])
        with translate_errors(doing, self.connection):
            answers = self._admin.list_consumer_group_offsets(
                [request], request_timeout=self._timeout
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
        """The number of partitions of a topic."""
        self._heartbeat()
        with translate_errors(f"looking for the partitions of {topic}", self.connection):
            return librdkafka.refresh_leaders(self._admin, topic, self._timeout)

    def _read(
        self,
        partitions: Sequence[Partition],
        spec: OffsetSpec,
        isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED,
    ) -> dict[Partition, int]:
        self._heartbeat()
        deadline = time.monotonic() + self._timeout
        places = ", ".join(map(str, partitions[:3])) + (", …" if len(partitions) > 3 else "")
        with translate_errors(f"reading the offsets of {places}", self.connection):
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
        """Raises TimeoutError when no answer arrives in time."""
        deadline = time.monotonic() + seconds
        try:
            topic = partitions[0].topic
            count = librdkafka.refresh_leaders(self._admin, topic, seconds)
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
            self._admin.poll(0)  # serves `error_cb`
