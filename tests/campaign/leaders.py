"""Which node of a cluster leads what, and when all of them have all of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import TopicMetadata
from confluent_kafka.cimpl import NewTopic

from stream_fs.kafka import Topics as KafkaTopics
from stream_fs.service.configuration import load
from stream_fs.service.topic_plans import topic_plans
from tests.integration.processes import wait_until
from tests.integration.topics import PATIENCE_SECONDS

GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
"""Each has one partition on our brokers, whose leader is the coordinator."""


class Leaders:
    """Asks the cluster again each time: nodes come and go."""

    def __init__(self, bootstrap: str) -> None:
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def of(self, topic: str, partition: int = 0) -> int:
        """The id of the node that leads a partition."""
        leader = self._topics()[topic].partitions[partition].leader
        assert leader >= 0, f"{topic}/{partition} has no leader"
        return leader

    def share(self, node: int, topic: str) -> int:
        """How many partitions of a topic a node leads."""
        return sum(p.leader == node for p in self._topics()[topic].partitions.values())

    def all_in_sync(self) -> bool:
        """Whether every node has all that it should have."""
        try:
            topics = self._topics()
        except KafkaException:
            return False
        places = [place for topic in topics.values() for place in topic.partitions.values()]
        return all(place.leader >= 0 and set(place.isrs) == set(place.replicas) for place in places)

    def await_sync(self) -> None:
        wait_until(self.all_in_sync, "replicas do not get in sync")

    def make_topics(self, leader: int, nodes: int) -> Callable[[Path], list[str]]:
        """Makes the topics of a stream with one leader for all of their partitions."""
        others = [number for number in range(1, nodes + 1) if number != leader]

        def make(config: Path) -> list[str]:
            configuration = load(config, {})
            topics = KafkaTopics(configuration.kafka_settings())
            plans = topic_plans(configuration, topics)
            missing = [p for p in plans if p.name not in topics.partitions([p.name])]
            wanted = [
                NewTopic(
                    plan.name,
                    plan.partitions,
                    replica_assignment=[[leader, *others]] * plan.partitions,
                    config=dict(plan.config),
                )
                for plan in missing
            ]
            for made in self.admin.create_topics(wanted).values():
                made.result(PATIENCE_SECONDS)
            return [plan.name for plan in missing]

        return make

    def _topics(self) -> Mapping[str, TopicMetadata]:
        return self.admin.list_topics(timeout=PATIENCE_SECONDS).topics
