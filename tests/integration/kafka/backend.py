"""The real broker as a backend of the contract suite."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, cast

from confluent_kafka import Consumer, KafkaError, KafkaException, Message, Producer, TopicPartition

from stream_fs.kafka import ClientSettings, KafkaTransport, Rebalance
from stream_fs.kafka.settings import Property
from stream_fs.pipeline.ports import Partition
from tests.contracts.backend import Published
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS, Topics, end_of, flush

_FAST = {"heartbeat.interval.ms": 500, "session.timeout.ms": 6000}
"""Settings with which rebalances are fast."""


class KafkaBackend:
    """Topics and groups of one test on a real broker."""

    def __init__(self, topics: Topics, rebalance: Rebalance = Rebalance.COOPERATIVE) -> None:
        self.topics = topics
        self._rebalance = rebalance
        self._producer = Producer(
            {"bootstrap.servers": topics.bootstrap, "linger.ms": 0, "log_level": 0}
        )
        self._states: dict[str, str] = {}
        self._groups: dict[str, str] = {}

    def topic(self, partitions: int = 1) -> str:
        name = self.topics.create("input", partitions=partitions)
        self._states[name] = self.topics.create("state", partitions=partitions)
        return name

    def grow(self, topic: str, partitions: int) -> None:
        self.topics.grow(topic, partitions)

    def state_topic(self, topic: str) -> str:
        return self._states[topic]

    def settings(
        self, group: str = "group", properties: Mapping[str, Property] | None = None
    ) -> ClientSettings:
        name = self._groups.setdefault(group, self.topics.unique(group))
        fast = {} if self._rebalance is Rebalance.CONSUMER else _FAST
        return ClientSettings(
            self.topics.bootstrap,
            name,
            rebalance=self._rebalance,
            properties={**fast, **(properties or {})},
        )

    def transport(self, group: str = "group") -> KafkaTransport:
        return KafkaTransport(self.settings(group), "stream", self.state_topic)

    def assigned(self, count: int, group: str = "group") -> None:
        """Wait until the broker has assigned `count` partitions to the members of a group."""
        name = self.settings(group).group

        def enough() -> bool:
            (answer,) = self.topics.admin.describe_consumer_groups([name]).values()
            members = answer.result(TIMEOUT_SECONDS).members
            return sum(len(one.assignment.topic_partitions) for one in members) >= count

        wait_until(enough, f"{count} partitions are assigned")

    def produce(
        self,
        partition: Partition,
        value: bytes | None,
        key: bytes | None = None,
        headers: tuple[tuple[str, bytes | None], ...] = (),
    ) -> int:
        delivered: list[int | None] = []

        def on_delivery(error: KafkaError | None, message: Message) -> None:
            assert error is None, error
            delivered.append(message.offset())

        self._producer.produce(
            partition.topic,
            value,
            key,
            partition.number,
            on_delivery=on_delivery,
            headers=list(headers),
        )
        flush(self._producer)
        return cast(int, delivered[0])

    def transactional_producer(self) -> Producer:
        """A producer with its own transactional id."""
        producer = Producer(
            {
                "bootstrap.servers": self.topics.bootstrap,
                "transactional.id": self.topics.unique("producer"),
                "log_level": 0,
            }
        )
        producer.init_transactions(TIMEOUT_SECONDS)
        return producer

    @staticmethod
    def transaction(
        producer: Producer, partition: Partition, values: Sequence[bytes], *, commit: bool | None
    ) -> None:
        """Append records in a transaction: committed, aborted, or (None) left open."""
        producer.begin_transaction()
        for value in values:
            producer.produce(partition.topic, value, partition=partition.number)
        flush(producer)  # otherwise records of an aborted one might never be sent
        if commit:
            producer.commit_transaction(TIMEOUT_SECONDS)
        elif commit is not None:
            producer.abort_transaction(TIMEOUT_SECONDS)

    def delete_below(self, partition: Partition, offset: int) -> None:
        place = TopicPartition(partition.topic, partition.number, offset)
        for deleted in self.topics.admin.delete_records([place]).values():
            deleted.result(TIMEOUT_SECONDS)

    def end_of(self, partition: Partition) -> int:
        """The end of any partition, open transactions included."""
        transport = KafkaTransport(self.settings(), "stream", lambda topic: topic)
        log = transport.state_log(partition)
        try:
            return log.end()
        finally:
            log.close()

    def published(self, topic: str, partition: int = 0) -> list[Published]:
        return list(self.committed(topic, partition).values())

    def committed(self, topic: str, partition: int = 0) -> Mapping[int, Published]:
        """Committed records by offset, up to the first open transaction."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.topics.bootstrap,
                "group.id": self.topics.unique("reader"),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "fetch.wait.max.ms": 10,
            }
        )
        found: dict[int, Published] = {}
        try:
            place = TopicPartition(topic, partition, 0)
            end = end_of(consumer, topic, partition)
            consumer.assign([place])
            while True:
                message = consumer.poll(TIMEOUT_SECONDS)
                assert message is not None, f"the end of {topic}/{partition} is not reached"
                offset = cast(int, message.offset())
                if (error := message.error()) is None:
                    headers = cast(Any, message.headers()) or ()
                    found[offset] = Published(message.key(), message.value(), tuple(headers))
                elif error.code() != KafkaError._PARTITION_EOF:
                    raise KafkaException(error)
                elif offset >= end:
                    return found
        finally:
            consumer.close()
