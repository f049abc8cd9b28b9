"""The leaders of a cluster's partitions, and whether its replicas are in sync."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._metadata import TopicMetadata
from confluent_kafka.cimpl import NewTopic

from stream_fs.kafka import Topics as KafkaTopics
from stream_fs.service.configuration import load
from stream_fs.service.topics import topic_specs
from tests.support.cluster import Cluster
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS

GROUPS, TRANSACTIONS = "__consumer_offsets", "__transaction_state"
COORDINATORS = (GROUPS, TRANSACTIONS)
"""Each has one partition on the brokers used here, whose leader is the coordinator."""


class Leaders:
    """Reads the metadata of the cluster on every call."""

    def __init__(self, bootstrap: str) -> None:
        self.admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})

    def of(self, topic: str, partition: int = 0) -> int:
        """The id of the node that leads a partition."""
        leader = self._topics()[topic].partitions[partition].leader
        assert leader >= 0, f"{topic}/{partition} has no leader"
        return leader

    def share(self, node: int, topic: str) -> tuple[int, int]:
        """How many partitions of a topic a node leads, and how many there are."""
        partitions = self._topics()[topic].partitions.values()
        return sum(place.leader == node for place in partitions), len(partitions)

    def coordinator(self, group: str) -> int:
        """The id of the node that coordinates a group, as its members see it."""
        (described,) = self.admin.describe_consumer_groups([group]).values()
        return int(described.result(TIMEOUT_SECONDS).coordinator.id)

    def move_coordinators_to_one_node(self, cluster: Cluster) -> int:
        """Make one node the coordinator of groups and transactions; its id.

        When the leader of a partition is killed, the first other replica in its list becomes leader
        and stays so. Of three nodes, one is among the first two of both lists: any other leader of
        one of the partitions is killed.
        """
        topics = self._topics()
        first, second = (topics[name].partitions[0].replicas[:2] for name in COORDINATORS)
        wanted = next(node for node in first if node in second)
        for name in COORDINATORS:
            for _ in topics[name].partitions[0].replicas:
                leader = self.of(name)
                if leader == wanted:
                    break
                cluster.nodes[leader].kill()
                wait_until(partial(self._has_other, name, leader), f"{name} has no new leader")
                cluster.nodes[leader].start()
                self.await_sync()
        assert [self.of(name) for name in COORDINATORS] == [wanted] * 2
        return wanted

    def _has_other(self, topic: str, leader: int) -> bool:
        """Whether another node leads it than the one that did."""
        try:
            return self._topics()[topic].partitions[0].leader not in (-1, leader)
        except KafkaException:
            return False

    def all_in_sync(self) -> bool:
        """Whether every partition has a leader and all its replicas are in sync."""
        try:
            topics = self._topics()
        except KafkaException:
            return False
        places = [place for topic in topics.values() for place in topic.partitions.values()]
        return all(place.leader >= 0 and set(place.isrs) == set(place.replicas) for place in places)

    def await_sync(self) -> None:
        wait_until(self.all_in_sync, "replicas do not get in sync")

    def make_topics(self, nodes: Sequence[int]) -> Callable[[Path], list[str]]:
        """A function that makes the topics of a stream on these nodes; the first one leads."""

        def make(config: Path) -> list[str]:
            configuration = load(config, {})
            topics = KafkaTopics(configuration.kafka_settings())
            plans = topic_specs(configuration, topics)
            missing = [p for p in plans if p.name not in topics.partitions([p.name])]
            wanted = [
                NewTopic(
                    plan.name,
                    plan.partitions,
                    replica_assignment=[list(nodes)] * plan.partitions,
                    config=dict(plan.config),
                )
                for plan in missing
            ]
            for made in self.admin.create_topics(wanted).values():
                made.result(TIMEOUT_SECONDS)
            return [plan.name for plan in missing]

        return make

    def _topics(self) -> Mapping[str, TopicMetadata]:
        return self.admin.list_topics(timeout=TIMEOUT_SECONDS).topics
