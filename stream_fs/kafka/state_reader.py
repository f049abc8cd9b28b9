"""A client that reads partitions by position, one at a time."""

from __future__ import annotations

from typing import Final

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, TopicPartition

from stream_fs.kafka.clients import state_consumer
from stream_fs.kafka.errors import Trouble, translated
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition

BATCH: Final = 500
WAIT_SECONDS: Final = 0.01


class StateReader:
    """Made with the first partition that it is placed at, and there until `close`.

    To place it again takes milliseconds, to make another one half a second. So partitions stay
    assigned to it, and all but the one that is read are paused.
    """

    def __init__(
        self,
        settings: ClientSettings,
        trouble: Trouble,
        *,
        batch: int = BATCH,
        wait: float = WAIT_SECONDS,
    ) -> None:
        """Up to `batch` messages are received at once, after a wait of so many seconds at most."""
        self._settings = settings
        self.trouble = trouble
        self._batch = batch
        self._wait = wait
        self._consumer: Consumer | None = None
        self._assigned: set[Partition] = set()
        self._at: Partition | None = None

    def place(self, partition: Partition, position: int) -> None:
        """Deliver from this offset on."""
        if self._at != partition:
            self.rest()
        where = TopicPartition(partition.topic, partition.number, position)
        with translated(f"reading {partition} from {position}", self.trouble):
            if self._consumer is None:
                self._consumer = state_consumer(self._settings, self.trouble)
            if partition in self._assigned:
                self._seek(self._consumer, where)
            else:
                self._consumer.incremental_assign([where])
                self._assigned.add(partition)
        self._at = partition

    def receive(self) -> list[Message]:
        """What there is of the partition, events in place of messages included."""
        assert self._consumer is not None
        with translated(f"reading {self._at}", self.trouble):
            # The first of them is waited for; a whole batch would be waited for to the end.
            received = self._consumer.consume(1, self._wait)
            if received:
                received += self._consumer.consume(self._batch - 1, 0)
        # What was on its way when another partition was left may still come.
        here = (self._at, (None, None))
        return [found for found in received if (found.topic(), found.partition()) in here]

    def rest(self) -> None:
        """Deliver nothing until it is placed again, and fetch nothing either."""
        if self._consumer is not None and self._at is not None:
            with translated(f"leaving {self._at}", self.trouble):
                self._consumer.pause([TopicPartition(self._at.topic, self._at.number)])
        self._at = None

    def close(self) -> None:
        """Let go."""
        if self._consumer is not None:
            self._consumer.close()
        self._consumer, self._at = None, None
        self._assigned.clear()

    @staticmethod
    def _seek(consumer: Consumer, where: TopicPartition) -> None:
        try:
            # In this order: a seek wakes up the fetching thread, which sleeps after a pause.
            consumer.resume([where])
            consumer.seek(where)  # to assign again would pause for a second
        except KafkaException as exception:
            if exception.args[0].code() != KafkaError._STATE:
                raise
            # The client has not taken it up yet, or has dropped it after an error.
            consumer.incremental_unassign([where])
            consumer.incremental_assign([where])
