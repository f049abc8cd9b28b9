"""The input topics, as a member of the consumer group."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from logging import DEBUG, INFO
from typing import Final, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition
from confluent_kafka import Message as Received

from stream_fs.errors import FatalError, OffsetGone, TransportError
from stream_fs.kafka.clients import LOGGER, input_consumer
from stream_fs.kafka.cursor import PartitionCursor
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.message_batch import BatchSizer, MessageBatch, delivered, without_events
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.kafka.settings import ClientSettings, Rebalance
from stream_fs.pipeline.ports import Assignment, Partition
from stream_fs.records import Message

_GATHER_SECONDS: Final = 0.005
"""How long a call waits for more once a message is there: `consume` alone would wait until it has a
whole batch, and so keep a record that comes alone for as long as a poll may wait."""
_SILENCE_SECONDS: Final = 5.0
"""After so long without a message, somebody is asked whether there is a connection at all."""
_ANSWER_SECONDS: Final = 2.0
"""How long that question waits for an answer."""
_GLANCE_SECONDS: Final = 0.5
"""How long the question waits where a silent partition ends; the others wait with it."""
_PROBE_SECONDS: Final = 0.2
"""How long a poll waits for an answer when the connection was last heard of as broken."""

_LEAVE_SECONDS: Final = 5.0
"""How long `close` waits for a rebalance to end, in steps of `_LEAVE_STEP_SECONDS`."""
_LEAVE_STEP_SECONDS: Final = 0.05
_LEAVE_BATCH: Final = 1000
"""Messages that each step discards, at most."""

_GONE: Final = {
    KafkaError._AUTO_OFFSET_RESET,
    KafkaError._LOG_TRUNCATION,
    KafkaError.OFFSET_OUT_OF_RANGE,
}
# The client repairs these itself.
_REPAIRED: Final = {
    KafkaError._MAX_POLL_EXCEEDED,
    KafkaError.UNKNOWN_TOPIC_OR_PART,
    KafkaError._UNKNOWN_PARTITION,
}
# The group takes no offsets while it shares its partitions anew; then it takes the next ones.
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
        offsets: OffsetReader | None = None,
    ) -> None:
        """`offsets` is asked for bounds; without it, one of its own is."""
        self._offsets = offsets or OffsetReader.connect(settings)
        self._timeout = settings.timeout
        self._incremental = settings.rebalance is not Rebalance.EAGER
        self._assignment = assignment
        self._topic = topics[0]
        self._claims: dict[Partition, PartitionCursor] = {}  # what is assigned
        self._look_at = 0.0
        self._kept: list[Received] = []
        self._batches = BatchSizer()
        self._raised: Exception | None = None
        self._outage = False
        self._static = "group.instance.id" in settings.properties
        self._leaving = False
        self._rebalanced = False  # a callback was called
        self.connection = ConnectionState()
        self._heard = time.monotonic()
        self._consumer = input_consumer(settings, self.connection, _committed)
        with translate_errors("subscribing", self.connection):
            self._consumer.subscribe(
                list(topics),
                on_assign=self._on_assign,
                on_revoke=self._on_revoke,
                on_lost=self._on_lost,
            )

    def poll(
        self, timeout: float, max_records: int | None = None
    ) -> Mapping[Partition, Sequence[Message]]:
        """Messages by partition, of those that were resumed, from the offset given then."""
        for partition, claim in tuple(self._claims.items()):
            if claim.waiting is not None:
                self._place(partition, claim.waiting)
        received, self._kept = self._kept, []
        with translate_errors("polling", self.connection):
            received += self._consume(
                0.0 if received else timeout,
                self._batches.next if max_records is None else max_records,
            )
        if self._raised is not None:  # by an `Assignment`; the messages must not be lost with it
            raised, self._raised, self._kept = self._raised, None, received
            raise raised
        now = time.monotonic()
        if received:
            self._heard = now
        messages = without_events(received, self._event)
        if messages:
            self._batches.came(messages)
        if self.connection.error is not None:
            self._find_connection(_PROBE_SECONDS)
        elif now - self._heard > _SILENCE_SECONDS:
            self._heard = now
            self._find_connection(_ANSWER_SECONDS)
        batches = self._drop_gaps(messages)
        for partition in batches:
            claim = self._claims[partition]
            claim.delivered, claim.told = now, None  # the client knows better again
        for partition, claim in tuple(self._claims.items()):
            if (offset := claim.remind(now)) is not None:
                if claim.waiting is None:
                    self._place(partition, offset)
                else:
                    self._assign_again(partition)
        if now > self._look_at:
            self._look_at = now + _SILENCE_SECONDS
            self._wake(now)
        return batches

    def _drop_gaps(self, received: Sequence[Received]) -> dict[Partition, MessageBatch]:
        """What is wanted of these, by partition; where records are missing, they are asked for."""
        wanted = {
            partition: claim.wanted
            for partition, claim in self._claims.items()
            if claim.wanted is not None
        }
        found: dict[Partition, MessageBatch] = {}
        for partition, batch in delivered(received, wanted).items():
            claim = self._claims[partition]
            claim.wanted = batch.offsets()[-1] + 1
            if claim.missing(wanted[partition], batch.offsets()[0]):
                self.resume(partition, wanted[partition])
            else:
                found[partition] = batch
        return found

    def _wake(self, now: float) -> None:
        """Ask once more for records that are there, but do not come, whatever others deliver.

        The client knows an end only from what it has fetched, so of a partition that is silent the
        broker is asked; whoever computes the lag learns of it, too.
        """
        silent = {
            partition: claim
            for partition, claim in self._claims.items()
            if now - claim.delivered > _SILENCE_SECONDS
        }
        self._learn_ends(silent)
        for partition, claim in silent.items():
            end = self.known_end(partition)
            if end is not None and (offset := claim.stalled_offset(end)) is not None:
                LOGGER.info("%s stands still at %d of %d: asked again", partition, offset, end)
                self._ask_again(partition, offset)

    def _learn_ends(self, silent: Mapping[Partition, PartitionCursor]) -> None:
        if self.connection.error is not None:  # nobody would answer
            return
        for topic in {partition.topic for partition in silent}:
            those = [partition for partition in silent if partition.topic == topic]
            try:
                ends = self._offsets.within(_GLANCE_SECONDS).last_stable_offsets(those)
            except TransportError as reason:
                LOGGER.info("where silent partitions of %s end is not known: %s", topic, reason)
            else:
                for partition, end in ends.items():
                    silent[partition].told = end

    def _consume(self, timeout: float, max_records: int) -> list[Received]:
        """What is there; at the latest shortly after the first message has come."""
        if timeout <= _GATHER_SECONDS:
            return self._consumer.consume(max_records, timeout)
        first = self._consumer.poll(timeout)
        if first is None:
            return []
        return [first, *self._consumer.consume(max_records - 1, _GATHER_SECONDS)]

    def resume(self, partition: Partition, offset: int) -> None:
        """Deliver this partition, from this offset on."""
        self._claim(partition).reached = None
        self._ask_again(partition, offset)

    def _ask_again(self, partition: Partition, offset: int) -> None:
        """Seek to the offset where the last delivery ended."""
        self._claim(partition).place(offset, time.monotonic())
        self._place(partition, offset)

    def _place(self, partition: Partition, offset: int) -> None:
        """Let the client fetch from this offset, now or as soon as it can."""
        claim = self._claim(partition)
        claim.wanted = None
        where = TopicPartition(partition.topic, partition.number, offset)
        with translate_errors(f"resuming {partition} at {offset}", self.connection):
            try:
                # In this order: a seek wakes up the fetching thread, which sleeps up to a second
                # after a pause, and voids what was fetched from elsewhere in between.
                self._consumer.resume([where])
                self._consumer.seek(where)
            except KafkaException as exception:
                if exception.args[0].code() != KafkaError._STATE:
                    raise
                claim.waiting = offset  # the client has not taken it up yet
                return
        claim.wanted, claim.waiting = offset, None

    def _assign_again(self, partition: Partition) -> None:
        """Assign a partition once more in which the client refuses to seek, see `_ends`."""
        LOGGER.info("%s is assigned again: the client refuses to seek", partition)
        again = [partition] if self._incremental else list(self._claims)
        due = {place: offset for place in again if (offset := self._claims[place].due) is not None}
        silent = self._ends([place for place in again if place not in due])
        places = [TopicPartition(*place, offset) for place, offset in (due | silent).items()]
        try:
            if self._incremental:
                self._consumer.incremental_unassign(places)
                self._consumer.incremental_assign(places)
            else:
                self._consumer.assign(places)
            self._consumer.pause([TopicPartition(*place) for place in silent])
            self._consumer.resume([TopicPartition(*place) for place in due])
        except KafkaException as exception:  # as in a rebalance
            LOGGER.info("%s cannot be assigned again: %s", partition, exception.args[0].str())
            return
        for place, offset in due.items():
            claim = self._claims[place]
            claim.place(offset, time.monotonic())
            claim.wanted, claim.waiting = offset, None

    def _claim(self, partition: Partition) -> PartitionCursor:
        return self._claims.setdefault(partition, PartitionCursor())

    def pause(self, partition: Partition) -> None:
        """Deliver nothing of this partition until it is resumed; what is on its way is dropped."""
        if partition in self._claims:
            self._claims[partition].rest()
        try:
            self._consumer.pause([TopicPartition(partition.topic, partition.number)])
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError._STATE:  # it is not ours any more
                raise classify(
                    exception.args[0], f"pausing {partition}", self.connection
                ) from exception

    def known_end(self, partition: Partition) -> int | None:
        """The end as the last fetch told it, or the broker where there was none for a while."""
        where = TopicPartition(partition.topic, partition.number)
        claim = self._claims.get(partition)
        told = None if claim is None else claim.told
        try:
            _, high = self._consumer.get_watermark_offsets(where, cached=True)
        except KafkaException:  # the client has never heard of it
            high = -1
        end = high if told is None else max(high, told)
        return end if end >= 0 else None

    def unread(self, partition: Partition, position: int) -> int | None:
        """0 if the client has reached the last stable offset, and the broker reports no later one.

        Until then the high watermark counts, and with it the offsets of transaction markers, of
        aborted records and of open transactions.
        """
        claim = self._claims.get(partition)
        left = None if claim is None else claim.unread(position)
        if left is not None:
            return left
        end = self.known_end(partition)
        return None if end is None else max(0, end - position)

    def connection_error(self) -> str | None:
        """Why there is no connection."""
        return self.connection.error

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The first offset that is still there, and the one behind the last decided record."""
        # The consumer's own call would wait for a broker that is gone.
        return self._offsets.first(partition), self._offsets.last_stable_offset(partition)

    def commit_group_offset(self, offsets: Mapping[Partition, int]) -> None:
        """Tell the group how far we are; a failure is logged, for nothing depends on it."""
        places = [TopicPartition(p.topic, p.number, offset) for p, offset in offsets.items()]
        try:
            if places:
                self._consumer.commit(offsets=places, asynchronous=True)
        except KafkaException as exception:
            _committed(exception.args[0], places)

    def group_offset(self, partition: Partition) -> int | None:
        """What the group believes, if it believes anything."""
        where = TopicPartition(partition.topic, partition.number)
        doing = f"asking for the group's offset of {partition}"
        self._offsets.progress()
        with translate_errors(doing, self.connection):
            (found,) = self._consumer.committed([where], self._timeout)
        if found.error is not None:
            raise classify(found.error, doing, self.connection)
        return found.offset if found.offset >= 0 else None

    def close(self) -> None:
        """Leave the group; `revoked` is called for what is still assigned."""
        self._leaving = True
        try:
            self._finish_rebalance()
        except KafkaException as exception:  # it is closed all the same
            LOGGER.info("a rebalance is not finished: %s", exception.args[0].str())
        self._offsets.progress()
        with translate_errors("leaving the group", self.connection):
            self._consumer.close()
        if self._raised is not None:
            raise self._raised

    def _finish_rebalance(self) -> None:
        """Answer every outstanding callback of a rebalance, and give up all partitions.

        A client that is closed while a callback is outstanding starts another rebalance on top of
        it. That may abort the process (librdkafka issue 4792), and partitions of the outstanding
        one are never revoked. `unsubscribe` waits until the rebalance has ended; only it would
        take a static member out of the group, which keeps its place when it is closed.

        Without a broker no rebalance ends, and one that waits for a slow member may take minutes:
        then what is still assigned is given up when the client is closed.
        """
        if not self._static:
            self._consumer.unsubscribe()
        until = time.monotonic() + _LEAVE_SECONDS
        while True:
            self._rebalanced = False
            self._offsets.progress()
            self._consumer.consume(_LEAVE_BATCH, _LEAVE_STEP_SECONDS)
            held = not self._static and bool(self._consumer.assignment())
            done = not (held or self._rebalanced)
            if done or self.connection.error is not None or time.monotonic() > until:
                return

    def _event(self, message: Received) -> None:
        """What the client tells in place of a message."""
        error = cast(KafkaError, message.error())
        topic, number = message.topic(), message.partition()
        doing = "polling" if topic is None else f"reading {topic}/{number}"
        partition = Partition(cast(str, topic), cast(int, number))
        claim = self._claims.get(partition)
        if error.code() == KafkaError._PARTITION_EOF:
            if claim is not None:
                claim.reach(cast(int, message.offset()))
            return
        if error.code() in _GONE and claim is not None and claim.asks_for(message.offset()):
            raise OffsetGone(
                f"{doing}: offset {message.offset()} is not in the log any more ({error.str()}); "
                f"to go on elsewhere, `stream-fs checkpoint reset {partition.flags} --to-offset N`,"
                " with `--keep-model` where there is a model to keep"
            )
        if error.code() not in _GONE | _REPAIRED:
            problem = classify(error, doing, self.connection)
            if isinstance(problem, FatalError):
                raise problem
        LOGGER.warning("%s: %s", doing, error.str())

    def _find_connection(self, timeout: float) -> None:
        """Ask a broker anything; tell once of an outage and of its end.

        An idle topic would not show the end, and the client does not always report the beginning.
        """
        try:
            self._consumer.list_topics(self._topic, timeout)
        except KafkaException as exception:
            self.connection.unanswered(exception.args[0])
            if not self._outage:
                LOGGER.warning("no broker answers: %s", self.connection.error)
            self._outage = True
            return
        if self._outage:
            LOGGER.warning("a broker answers again")
        self._outage = False
        self.connection.clear()

    def _on_assign(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._batches.begin()
        self._rebalanced = True
        assigned = [Partition(p.topic, p.partition) for p in partitions]
        ends = dict.fromkeys(assigned, 0) if self._leaving else self._ends(assigned)
        places = [TopicPartition(*partition, end) for partition, end in ends.items()]
        if self._incremental:
            consumer.incremental_assign(places)
        else:
            consumer.assign(places)
        consumer.pause(places)
        if not self._leaving:
            self._claims |= {partition: PartitionCursor() for partition in assigned}
            self._tell(self._assignment.assigned, assigned)

    def _ends(self, partitions: Sequence[Partition]) -> dict[Partition, int]:
        """Where to assign partitions that are silent at first: at their ends, which are readable.

        A fetch may go out before the pause, and if it fails (at 0, when retention has deleted
        that), the client refuses to seek ever after.

        They are always numbers. For `OFFSET_END` the client would query the broker itself, and
        would return to the end with every late answer, also after a `seek`: records would be
        skipped, and no event marks the last answer. So where no broker answers, partitions are
        assigned at 0. If that fetch fails, `_assign_again` follows.
        """
        ends = dict.fromkeys(partitions, 0)
        for topic in {partition.topic for partition in partitions}:
            those = [partition for partition in partitions if partition.topic == topic]
            try:
                ends.update(self._offsets.within(_ANSWER_SECONDS).ends(those))
            except TransportError as reason:
                LOGGER.info("%s is assigned at 0, for its ends are not known: %s", topic, reason)
        return ends

    def _on_revoke(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(consumer, partitions, self._assignment.revoked)

    def _on_lost(self, consumer: Consumer, partitions: list[TopicPartition]) -> None:
        self._give_up(consumer, partitions, self._assignment.lost)

    def _give_up(
        self,
        consumer: Consumer,
        partitions: list[TopicPartition],
        event: Callable[[Sequence[Partition]], None],
    ) -> None:
        self._rebalanced = True
        gone = [Partition(p.topic, p.partition) for p in partitions]
        # Partitions that were assigned while leaving the group were never reported.
        self._tell(event, [partition for partition in gone if partition in self._claims])
        for partition in gone:
            self._claims.pop(partition, None)
        if self._incremental:
            consumer.incremental_unassign(partitions)
        else:
            consumer.unassign()

    def _tell(
        self, event: Callable[[Sequence[Partition]], None], partitions: Sequence[Partition]
    ) -> None:
        """Pass an event on; what it raises waits until the client's call is over."""
        try:
            event(partitions)
        except Exception as exception:  # noqa: BLE001  # kept, and raised by `poll` or `close`
            self._raised = self._raised or exception


def _committed(error: KafkaError | None, offsets: list[TopicPartition]) -> None:
    if error is not None:
        places = ", ".join(f"{p.topic}/{p.partition} {p.offset}" for p in offsets)
        level = DEBUG if error.code() in _REBALANCING else INFO
        LOGGER.log(level, "the group does not know of %s: %s", places, error.str())
