"""The read positions of the assigned partitions, and what is known of their ends.

What the client delivers is compared with what was asked for: seeks that it forgets or does not
answer are repeated.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as ClientMessage

from stream_fs.errors import TransportError
from stream_fs.kafka import librdkafka
from stream_fs.kafka.clients import topic_partitions
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.librdkafka import LOGGER
from stream_fs.kafka.message_batch import MessageBatch, batches_by_partition
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.pipeline.ports import Partition

SILENCE_SECONDS: Final = 5.0
"""Without a message of a partition for this long, its end is read from the broker."""
_END_SECONDS: Final = 0.5
"""Timeout of that; the other partitions wait meanwhile."""
_ASSIGNMENT_SECONDS: Final = 2.0
"""Timeout of reading the ends of partitions that are being assigned."""
FIRST_INTERVAL: Final = 5.0
"""Seconds after which an unanswered seek is repeated."""
LONGEST_INTERVAL: Final = 160.0
"""Most seconds between two repetitions of a seek: each voids an answer that is on its way."""


@dataclass(slots=True)
class PartitionCursor:
    """An assigned partition; offsets are None where there is none.

    A partition is paused, about to be delivered (`pending` or `sought` is set), or
    delivered from `wanted` on.
    """

    wanted: int | None = None
    """The next offset, while the partition is delivered."""
    pending: int | None = None
    """Where to seek as soon as the client accepts it."""
    sought: int | None = None
    """The offset of a seek, until the first message after it has arrived."""
    delivered_at: float = 0.0
    """When the last message arrived."""
    broker_end: int | None = None
    """The last stable offset as read from the broker, while the partition is silent."""
    stable_end: int | None = None
    """The last stable offset that the client has reached; see `reach_end`."""
    _repeat_at: float = 0.0
    _interval: float = FIRST_INTERVAL
    _stalled_at: tuple[int, int] | None = None
    """The offset and the end at which the partition was found to be stalled."""
    _gap: tuple[int, int] | None = None
    """The gap to verify: the offset that was wanted, and the first that came."""
    _largest_gap: int = 0
    """The largest gap that was verified."""

    @property
    def next_offset(self) -> int | None:
        """The next offset, while the partition is delivered or about to be."""
        return self.pending if self.wanted is None else self.wanted

    def covers(self, offset: int | None) -> bool:
        """Whether a fetch from this offset belongs to the current position, not to an older one."""
        return self.wanted is not None and (offset is None or offset >= self.wanted)

    def record_seek(self, offset: int, now: float) -> None:
        """Expect the message at this offset; `repeated_seek` repeats the seek until one arrives."""
        self.sought = offset
        self._repeat_at, self._interval = now + FIRST_INTERVAL, FIRST_INTERVAL

    def repeated_seek(self, now: float) -> int | None:
        """The offset of an unanswered seek that is to be repeated now, at growing intervals.

        A seek voids the answer that is on its way: where answers take long, frequent ones would
        void them all.
        """
        if self.sought is None or now <= self._repeat_at:
            return None
        self._interval = min(2 * self._interval, LONGEST_INTERVAL)
        self._repeat_at = now + self._interval
        return self.sought

    def pause(self) -> None:
        """Deliver nothing."""
        self.wanted = self.pending = self.sought = None

    def reach_end(self, offset: int) -> None:
        """Note that the client has delivered everything before this last stable offset.

        Transaction markers and aborted records before it are never delivered.
        """
        if self.wanted is not None and offset >= self.wanted:
            self.stable_end = offset

    def unread(self, position: int) -> int | None:
        """Offsets between `position` and the last stable offset; None where that is not known.

        It is known once the client has reached it, until messages behind it are delivered.
        """
        if self.stable_end is None or position > self.stable_end:
            return None
        return max(0, (self.broker_end or 0) - self.stable_end)

    def has_unverified_gap(self, expected: int, first: int) -> bool:
        """Whether records before the first offset of a batch may have been skipped.

        A seek that the client forgets would skip records (librdkafka #2256). So when the first
        message after a seek is not the one that was sought, the seek is repeated; the same answer
        twice verifies that the records in between do not exist.

        Later the first message of every batch is checked, unless the gap is no larger than a
        verified one: transaction markers and compaction leave such gaps everywhere, and a repeated
        seek discards what was fetched in advance.
        """
        gap = first - expected
        if gap and (self.sought is not None or gap > self._largest_gap):
            if self._gap != (expected, first):
                self._gap = (expected, first)
                return True
            self._largest_gap = max(gap, self._largest_gap)
        self.sought = None
        return False

    def stalled_offset(self, end: int) -> int | None:
        """The offset to seek to where records before `end` do not arrive; None otherwise.

        Once for every offset and end: what remains may be the marker of a transaction.
        """
        offset = self.wanted
        if offset is None or self.sought is not None or end <= offset:
            return None
        if self._stalled_at == (offset, end):
            return None
        self._stalled_at = (offset, end)
        return offset


class PartitionCursors:
    """The cursors of all partitions that are assigned to a consumer."""

    def __init__(
        self,
        consumer: Consumer,
        offsets: OffsetReader,
        connection: ConnectionState,
        *,
        incremental: bool,
    ) -> None:
        self._consumer = consumer
        self._offsets = offsets
        self._connection = connection
        self._incremental = incremental
        self._cursors: dict[Partition, PartitionCursor] = {}
        self._next_end_check = 0.0

    def __contains__(self, partition: Partition) -> bool:
        return partition in self._cursors

    def add(self, partitions: Iterable[Partition]) -> None:
        """Begin with paused cursors."""
        self._cursors |= {partition: PartitionCursor() for partition in partitions}

    def remove(self, partitions: Iterable[Partition]) -> None:
        """Forget partitions that are not assigned any more."""
        for partition in partitions:
            self._cursors.pop(partition, None)

    def assignment_offsets(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """The offsets at which to assign partitions; see `librdkafka.assignment_offsets`."""
        read_ends = self._offsets.within(_ASSIGNMENT_SECONDS).ends
        return librdkafka.assignment_offsets(partitions, read_ends)

    def resume(self, partition: Partition, offset: int) -> None:
        """Deliver this partition, from this offset on."""
        self._cursor(partition).stable_end = None
        self._start_seek(partition, offset)

    def pause(self, partition: Partition) -> None:
        """Deliver nothing of this partition until it is resumed; what is in flight is dropped."""
        if partition in self._cursors:
            self._cursors[partition].pause()
        try:
            self._consumer.pause([TopicPartition(*partition)])
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError._STATE:  # it is not assigned any more
                raise classify(
                    exception.args[0], f"pausing {partition}", self._connection
                ) from exception

    def try_pending_seeks(self) -> None:
        """Seek where the client has refused before."""
        for partition, cursor in tuple(self._cursors.items()):
            if cursor.pending is not None:
                self._seek(partition, cursor.pending)

    def deliver(
        self, messages: Sequence[ClientMessage], now: float
    ) -> dict[Partition, MessageBatch]:
        """The wanted messages; of a partition where some may have been skipped, none."""
        wanted = {
            partition: cursor.wanted
            for partition, cursor in self._cursors.items()
            if cursor.wanted is not None
        }
        batches: dict[Partition, MessageBatch] = {}
        for partition, batch in batches_by_partition(messages, wanted).items():
            if not self._drop_gap(partition, wanted[partition], batch):
                cursor = self._cursors[partition]
                cursor.delivered_at, cursor.broker_end = now, None  # the client knows a newer end
                batches[partition] = batch
        return batches

    def _drop_gap(self, partition: Partition, wanted: int, batch: MessageBatch) -> bool:
        """Seek to `wanted` once more where records before the batch may have been skipped."""
        cursor, offsets = self._cursors[partition], batch.offsets()
        cursor.wanted = offsets[-1] + 1
        if cursor.has_unverified_gap(wanted, offsets[0]):
            self.resume(partition, wanted)
            return True
        return False

    def recover(self, now: float) -> None:
        """Repeat seeks without an answer, and restart partitions that are stalled."""
        for partition, cursor in tuple(self._cursors.items()):
            if (offset := cursor.repeated_seek(now)) is not None:
                if cursor.pending is None:
                    self._seek(partition, offset)
                else:
                    self._assign_again(partition)
        if now > self._next_end_check:
            self._next_end_check = now + SILENCE_SECONDS
            self._restart_stalled(now)

    def covers(self, partition: Partition, offset: int | None) -> bool:
        """Whether a fetch from this offset belongs to the current position of a partition."""
        return partition in self._cursors and self._cursors[partition].covers(offset)

    def reach_end(self, partition: Partition, offset: int) -> None:
        """Note that the client has delivered everything before this last stable offset."""
        if partition in self._cursors:
            self._cursors[partition].reach_end(offset)

    def known_end(self, partition: Partition) -> int | None:
        """The end as of the last fetch, or as read from the broker since; None if unknown."""
        cursor = self._cursors.get(partition)
        broker_end = None if cursor is None else cursor.broker_end
        try:
            _, high = self._consumer.get_watermark_offsets(TopicPartition(*partition), cached=True)
        except KafkaException:  # the client does not know the partition
            high = -1
        end = high if broker_end is None else max(high, broker_end)
        return end if end >= 0 else None

    def unread(self, partition: Partition, position: int) -> int | None:
        """0 if the client has reached the last stable offset, and the broker reports no later one.

        Until then the high watermark counts, and with it the offsets of transaction markers, of
        aborted records and of open transactions.
        """
        cursor = self._cursors.get(partition)
        unread = None if cursor is None else cursor.unread(position)
        if unread is not None:
            return unread
        end = self.known_end(partition)
        return None if end is None else max(0, end - position)

    def _cursor(self, partition: Partition) -> PartitionCursor:
        return self._cursors.setdefault(partition, PartitionCursor())

    def _start_seek(self, partition: Partition, offset: int) -> None:
        self._cursor(partition).record_seek(offset, time.monotonic())
        self._seek(partition, offset)

    def _seek(self, partition: Partition, offset: int) -> None:
        """Let the client fetch from this offset, now or as soon as it accepts the seek."""
        cursor = self._cursor(partition)
        cursor.wanted = None
        with translate_errors(f"resuming {partition} at {offset}", self._connection):
            accepted = librdkafka.seek(self._consumer, TopicPartition(*partition, offset))
        if accepted:
            cursor.wanted, cursor.pending = offset, None
        else:
            cursor.pending = offset

    def _assign_again(self, partition: Partition) -> None:
        """Assign a partition in which the client refuses to seek; if not incremental, all."""
        LOGGER.info("%s is assigned again: the client refuses to seek", partition)
        places = [partition] if self._incremental else list(self._cursors)
        offsets = {
            place: offset
            for place in places
            if (offset := self._cursors[place].next_offset) is not None
        }
        paused = self.assignment_offsets([place for place in places if place not in offsets])
        if librdkafka.assign_again(
            self._consumer,
            topic_partitions(offsets),
            topic_partitions(paused),
            incremental=self._incremental,
        ):
            for place, offset in offsets.items():
                cursor = self._cursors[place]
                cursor.record_seek(offset, time.monotonic())
                cursor.wanted, cursor.pending = offset, None

    def _restart_stalled(self, now: float) -> None:
        """Seek once more in silent partitions that hold records, whatever others deliver.

        The client knows an end only from what it has fetched, so the end of a silent partition is
        read from the broker; the lag is computed from it, too.
        """
        silent = {
            partition: cursor
            for partition, cursor in self._cursors.items()
            if now - cursor.delivered_at > SILENCE_SECONDS
        }
        self._read_ends(silent)
        for partition, cursor in silent.items():
            end = self.known_end(partition)
            if end is not None and (offset := cursor.stalled_offset(end)) is not None:
                LOGGER.info(
                    "%s: no records from offset %d on, although it ends at %d: seeking again",
                    partition,
                    offset,
                    end,
                )
                self._start_seek(partition, offset)

    def _read_ends(self, silent: Mapping[Partition, PartitionCursor]) -> None:
        if self._connection.error is not None:
            return
        offsets = self._offsets.within(_END_SECONDS)
        for topic in {partition.topic for partition in silent}:
            try:
                ends = offsets.last_stable_offsets([p for p in silent if p.topic == topic])
            except TransportError as reason:
                LOGGER.info("the ends of silent partitions of %s are unknown: %s", topic, reason)
            else:
                for partition, end in ends.items():
                    silent[partition].broker_end = end
