"""The input topics, consumed as a member of the consumer group.

A partition is paused after its assignment, until `resume` names the offset to deliver it from;
`PartitionCursors` see to it that this is where the client delivers it from.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from logging import DEBUG, INFO
from typing import Final, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as ClientMessage

from stream_fs.errors import FatalError, OffsetGone
from stream_fs.kafka import librdkafka
from stream_fs.kafka.clients import (
    Heartbeat,
    input_consumer,
    no_heartbeat,
    topic_partitions,
)
from stream_fs.kafka.cursor import SILENCE_SECONDS, PartitionCursors
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.librdkafka import LOGGER
from stream_fs.kafka.message_batch import BatchSizer, without_events
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.kafka.settings import ClientSettings, Rebalance
from stream_fs.pipeline.ports import Assignment, Partition
from stream_fs.records import Message

_IDLE_TEST_SECONDS: Final = 2.0
"""Timeout of a test of the connection after `SILENCE_SECONDS` without a message."""
_OUTAGE_TEST_SECONDS: Final = 0.2
"""Timeout of the test in every poll during an outage."""

_OFFSET_GONE: Final = {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._LOG_TRUNCATION,
    KafkaError.OFFSET_OUT_OF_RANGE,
}
# The client recovers from these by itself.
_RECOVERED: Final = {
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
}
# The group accepts no offsets during a rebalance; it accepts the next ones.
_REBALANCING: Final = {
    KafkaError.ILLEGAL_GENERATION,
    KafkaError.REBALANCE_IN_PROGRESS,
    KafkaError.UNKNOWN_MEMBER_ID,
    KafkaError.STALE_MEMBER_EPOCH,
}


class KafkaConsumer:
    """See `stream_fs.pipeline.ports.Input`.

    `connection.error` says why there is no connection, None when there is one.
    """

    def __init__(
        self,
        settings: ClientSettings,
        topics: Sequence[str],
        assignment: Assignment,
        offsets: OffsetReader,
        chunk_records: int,
        heartbeat: Heartbeat = no_heartbeat,
    ) -> None:
        """`offsets` may be shared; large polls end with a chunk of `chunk_records`."""
        self._offsets = offsets
        self._timeout = settings.timeout
        self._heartbeat = heartbeat
        self._incremental = settings.rebalance is not Rebalance.EAGER
        self._static = "group.instance.id" in settings.properties
        self._assignment = assignment
        self._topic = topics[0]
        self._batch_sizer = BatchSizer(chunk_records)
        self._undelivered: list[ClientMessage] = []
        self._callback_error: Exception | None = None
        self._callbacks = 0
        self._closing = False
        self._outage = False
        self._last_message = time.monotonic()
        self.connection = ConnectionState()
        self._consumer = input_consumer(settings, self.connection, _log_commit_error)
        self._cursors = PartitionCursors(
            self._consumer, self._offsets, self.connection, incremental=self._incremental
        )
        with translate_errors("subscribing", self.connection):
            self._consumer.subscribe(
                list(topics),
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )

    # Polling

    def poll(
        self, timeout: float, max_records: int | None = None
    ) -> Mapping[Partition, Sequence[Message]]:
        """Messages by partition, of those that were resumed, from the offset given then."""
        self._cursors.try_pending_seeks()
        received = self._receive(timeout, max_records)
        now = time.monotonic()
        if received:
            self._last_message = now
        messages = without_events(received, self._handle_event)
        if messages:
            self._batch_sizer.update(messages)
        self._test_connection(now)
        batches = self._cursors.deliver(messages, now)
        self._cursors.recover(now)
        return batches

    def _receive(self, timeout: float, max_records: int | None) -> list[ClientMessage]:
        """Messages and events; raises what an `Assignment` has raised, without losing messages."""
        received, self._undelivered = self._undelivered, []
        with translate_errors("polling", self.connection):
            received += librdkafka.consume(
                self._consumer,
                self._batch_sizer.next if max_records is None else max_records,
                0.0 if received else timeout,
            )
        if self._callback_error is not None:
            error, self._callback_error, self._undelivered = self._callback_error, None, received
            raise error
        return received

    def _handle_event(self, message: ClientMessage) -> None:
        """Handle what the client delivers in place of a message: an error or a partition's end."""
        error = cast(KafkaError, message.error())
        topic, number = message.topic(), message.partition()
        doing = "polling" if topic is None else f"reading {topic}/{number}"
        partition = Partition(cast(str, topic), cast(int, number))
        if error.code() == KafkaError._PARTITION_EOF:
            self._cursors.reach_end(partition, cast(int, message.offset()))
            return
        gone = error.code() in _OFFSET_GONE
        if gone and self._cursors.covers(partition, message.offset()):
            raise OffsetGone(
                f"{doing}: offset {message.offset()} is not in the log any more ({error.str()}); "
                "to continue elsewhere, run "
                f"`stream-fs checkpoint reset {partition.flags} --to-offset N`, with "
                "`--keep-model` to keep the model"
            )
        if not gone and error.code() not in _RECOVERED:
            problem = classify(error, doing, self.connection)
            if isinstance(problem, FatalError):
                raise problem
        LOGGER.warning("%s: %s", doing, error.str())

    def _test_connection(self, now: float) -> None:
        """Send any request when no message has come for long; log an outage and its end once.

        An idle topic would not show the end, and the client does not always report the beginning.
        """
        if self.connection.error is not None:
            timeout = _OUTAGE_TEST_SECONDS
        elif now - self._last_message > SILENCE_SECONDS:
            self._last_message, timeout = now, _IDLE_TEST_SECONDS
        else:
            return
        try:
            self._consumer.list_topics(self._topic, timeout)
        except KafkaException as exception:
            self.connection.record_timeout(exception.args[0])
            if not self._outage:
                LOGGER.warning("no broker answers: %s", self.connection.error)
            self._outage = True
            return
        if self._outage:
            LOGGER.warning("a broker answers again")
        self._outage = False
        self.connection.clear()

    # Position, bounds and lag

    def resume(self, partition: Partition, offset: int) -> None:
        """Deliver this partition, from this offset on."""
        self._cursors.resume(partition, offset)

    def pause(self, partition: Partition) -> None:
        """Deliver nothing of this partition until it is resumed; what is in flight is dropped."""
        self._cursors.pause(partition)

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The first offset that is still there, and the one behind the last decided record."""
        # The consumer's own call would wait for a broker that is gone.
        return self._offsets.first(partition), self._offsets.last_stable_offset(partition)

    def known_end(self, partition: Partition) -> int | None:
        """The end as of the last fetch, or as read from the broker since; None if unknown."""
        return self._cursors.known_end(partition)

    def unread(self, partition: Partition, position: int) -> int | None:
        """Offsets from `position` on that can be delivered; see `PartitionCursors.unread`."""
        return self._cursors.unread(partition, position)

    def connection_error(self) -> str | None:
        """Why there is no connection."""
        return self.connection.error

    # The consumer group

    def commit_group_offset(self, offsets: Mapping[Partition, int]) -> None:
        """Commit to the group, for lag tools; a failure is logged, as nothing depends on it."""
        places = topic_partitions(offsets)
        try:
            if places:
                self._consumer.commit(offsets=places, asynchronous=True)
        except KafkaException as exception:
            _log_commit_error(exception.args[0], places)

    def group_offset(self, partition: Partition) -> int | None:
        """The offset that the group has committed, if any."""
        doing = f"reading the group offset of {partition}"
        self._heartbeat()
        with translate_errors(doing, self.connection):
            (found,) = self._consumer.committed([TopicPartition(*partition)], self._timeout)
        if found.error is not None:
            raise classify(found.error, doing, self.connection)
        return found.offset if found.offset >= 0 else None

    def close(self) -> None:
        """Leave the group; `revoked` is called for what is still assigned."""
        self._closing = True
        try:
            librdkafka.finish_rebalance(
                self._consumer,
                static=self._static,
                callbacks=lambda: self._callbacks,
                unreachable=lambda: self.connection.error is not None,
                heartbeat=self._heartbeat,
            )
        except KafkaException as exception:  # the consumer is closed all the same
            LOGGER.info("a rebalance is not finished: %s", exception.args[0].str())
        self._heartbeat()
        with translate_errors("leaving the group", self.connection):
            self._consumer.close()
        if self._callback_error is not None:
            raise self._callback_error

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._callbacks += 1
        self._batch_sizer.restart()
        assigned = [Partition(p.topic, p.partition) for p in partitions]
        offsets = dict.fromkeys(assigned, 0)
        if not self._closing:
            offsets = self._cursors.assignment_offsets(assigned)
        places = topic_partitions(offsets)
        if self._incremental:
            consumer.incremental_assign(places)
        else:
            consumer.assign(places)
        consumer.pause(places)
        if not self._closing:
            self._cursors.add(assigned)
            self._report(self._assignment.assigned, assigned)

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._unassign(consumer, partitions, self._assignment.revoked)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._unassign(consumer, partitions, self._assignment.lost)

    def _unassign(
        self,
        consumer: Consumer,
        partitions: list[TopicPartition],
        event: Callable[[Sequence[Partition]], None],
    ) -> None:
        self._callbacks += 1
        # Partitions that were assigned during `close` were never reported.
        assigned = [Partition(p.topic, p.partition) for p in partitions]
        self._report(event, [partition for partition in assigned if partition in self._cursors])
        self._cursors.remove(assigned)
        if self._incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def _report(
        self, event: Callable[[Sequence[Partition]], None], partitions: Sequence[Partition]
    ) -> None:
        """Call the `Assignment`; what it raises is raised after the client's call."""
        try:
            event(partitions)
        except Exception as exception:  # noqa: BLE001  # kept, and raised by `poll` or `close`
            self._callback_error = self._callback_error or exception


def _log_commit_error(error: KafkaError | None, offsets: list[TopicPartition]) -> None:
    if error is not None:
        places = ", ".join(f"{p.topic}/{p.partition} {p.offset}" for p in offsets)
        level = DEBUG if error.code() in _REBALANCING else INFO
        LOGGER.log(level, "group offsets are not committed: %s: %s", places, error.str())
