"""Topics of a test's own on a broker that it shares with others."""

from __future__ import annotations

import time
import uuid
from collections.abc import Mapping, Sequence

from confluent_kafka import Consumer, KafkaError, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewPartitions, NewTopic

TIMEOUT_SECONDS = 60.0
"""Far more than anything takes, also on a busy machine."""
_NO_LEADER = (KafkaError.NOT_LEADER_FOR_PARTITION, KafkaError.LEADER_NOT_AVAILABLE)


def flush(producer: Producer, seconds: float = TIMEOUT_SECONDS) -> None:
    """Wait until everything is written.

    `Producer.flush` also returns when only events of the client are left.
    """
    deadline = time.monotonic() + seconds
    while left := producer.flush(max(0.0, deadline - time.monotonic())):
        if time.monotonic() > deadline:
            raise TimeoutError(f"{left} records were not written")


def end_of(consumer: Consumer, topic: str, partition: int = 0) -> int:
    """The end of a partition, as this consumer sees it.

    Repeats the request while a busy broker knows a topic and does not lead it yet.
    """
    place, deadline = TopicPartition(topic, partition), time.monotonic() + TIMEOUT_SECONDS
    while True:
        try:
            return consumer.get_watermark_offsets(place, TIMEOUT_SECONDS)[1]
        except KafkaException as exception:
            if exception.args[0].code() not in _NO_LEADER or time.monotonic() > deadline:
                raise
        time.sleep(0.05)


class Topics:
    """Makes topics with unique names, and removes them in the end."""

    def __init__(self, bootstrap: str) -> None:
        self.bootstrap = bootstrap
        # Silent: it may outlive the broker, and what it is asked for raises.
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
        self._created: list[str] = []

    def unique(self, purpose: str) -> str:
        """A name for a topic, a group or a transactional id."""
        return f"{purpose}-{uuid.uuid4().hex[:12]}"

    def create(
        self,
        purpose: str = "topic",
        *,
        partitions: int = 1,
        config: Mapping[str, str] | None = None,
        nodes: Sequence[int] | None = None,
    ) -> str:
        """A new topic, which clients can use when this returns.

        All of its partitions are on these `nodes` of a cluster, of which the first one leads them.
        """
        name = self.unique(purpose)
        topic = NewTopic(name, num_partitions=partitions, config=dict(config or {}))
        if nodes is not None:
            topic.replica_assignment = [list(nodes)] * partitions
        self.admin.create_topics([topic])[name].result(TIMEOUT_SECONDS)
        self._created.append(name)
        self.await_leaders(name, partitions)
        return name

    def grow(self, name: str, partitions: int) -> None:
        """Add partitions to a topic, up to so many."""
        (grown,) = self.admin.create_partitions([NewPartitions(name, partitions)]).values()
        grown.result(TIMEOUT_SECONDS)
        self.await_leaders(name, partitions)

    def await_leaders(self, name: str, partitions: int) -> None:
        """Wait until clients can use a topic that was just made."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not self._has_leaders(name, partitions):
            if time.monotonic() > deadline:
                raise TimeoutError(f"topic {name} has no leaders")
            time.sleep(0.05)

    def read(self, topic: str, count: int, *, partition: int = 0) -> list[bytes | None]:
        """The values of the first ``count`` records; those of transactions only when committed."""
        consumer = Consumer(
            {
                "bootstrap.servers": self.bootstrap,
                "group.id": self.unique("reader"),
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
            }
        )
        values: list[bytes | None] = []
        try:
            consumer.assign([TopicPartition(topic, partition, 0)])
            deadline = time.monotonic() + TIMEOUT_SECONDS
            while len(values) < count:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{topic} gave {len(values)} of {count} records: {values}")
                for message in consumer.consume(count - len(values), timeout=0.2):
                    if (error := message.error()) is not None:
                        raise KafkaException(error)
                    values.append(message.value())
        finally:
            consumer.close()
        return values

    def remove(self) -> None:
        """Delete what was created."""
        if self._created:
            for deleted in self.admin.delete_topics(self._created).values():
                deleted.result(TIMEOUT_SECONDS)
            self._created.clear()

    def _has_leaders(self, name: str, partitions: int) -> bool:
        found = self.admin.list_topics(name, timeout=TIMEOUT_SECONDS).topics[name]
        leaders = [partition.leader for partition in found.partitions.values()]
        return found.error is None and len(leaders) == partitions and min(leaders) >= 0
