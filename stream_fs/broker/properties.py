"""The server.properties of a node, as a function of the nodes that form the cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from stream_fs.broker.interface import PLAINTEXT

CONTROLLER: Final = "CONTROLLER"
CLUSTER_ID: Final = "c3RyZWFtLWZzLWJyb2tlcg"
"""Sixteen bytes in base64, as Kafka wants them; every development cluster has the same."""


@dataclass(frozen=True)
class Node:
    """One Kafka process, broker and controller at once."""

    id: int
    host: str
    """The name under which clients reach it."""
    bind: str
    """The interface that its client listeners are bound to."""
    ports: Mapping[str, int]
    """Listener name to port, `CONTROLLER` among them."""
    data: str
    """Its directory for logs and metadata."""
    advertised: Mapping[str, str] = field(default_factory=dict)
    """Listener name to the ``host:port`` that clients are told, where it is not the node's own."""

    def address(self, listener: str) -> str:
        """``host:port`` of a listener; controllers talk to each other on their own machine."""
        host = "127.0.0.1" if listener == CONTROLLER else self.host
        return f"{host}:{self.ports[listener]}"


def server_properties(
    node: Node,
    nodes: Sequence[Node],
    protocols: Mapping[str, str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """The properties of ``node`` in the cluster of ``nodes`` (itself included).

    ``protocols`` gives the security protocol of every client listener; ``extra`` is laid over the
    result. Internal topics are replicated to every node and written by a majority. Brokers and
    groups start and notice losses and timeouts fast, because tests wait for them: a killed broker
    can come back only after its session has expired.
    """
    replicas = str(len(nodes))
    majority = str(len(nodes) // 2 + 1)
    clients = [f"{name}://{node.bind}:{node.ports[name]}" for name in protocols]
    told = {name: node.address(name) for name in protocols} | dict(node.advertised)
    security = {**protocols, CONTROLLER: "PLAINTEXT"}
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.bootstrap.servers": ",".join(n.address(CONTROLLER) for n in nodes),
        "controller.listener.names": CONTROLLER,
        "listeners": ",".join([*clients, f"{CONTROLLER}://{node.address(CONTROLLER)}"]),
        "advertised.listeners": ",".join(f"{name}://{told[name]}" for name in protocols),
        "listener.security.protocol.map": ",".join(f"{n}:{p}" for n, p in security.items()),
        "inter.broker.listener.name": PLAINTEXT,
        "log.dirs": node.data,
        "broker.heartbeat.interval.ms": "250",
        "broker.session.timeout.ms": "5000",
        "auto.create.topics.enable": "false",
        "default.replication.factor": replicas,
        "min.insync.replicas": majority,
        "offsets.topic.num.partitions": "1",
        "offsets.topic.replication.factor": replicas,
        "transaction.state.log.num.partitions": "1",
        "transaction.state.log.replication.factor": replicas,
        "transaction.state.log.min.isr": majority,
        "share.coordinator.state.topic.num.partitions": "1",
        "share.coordinator.state.topic.replication.factor": replicas,
        "share.coordinator.state.topic.min.isr": majority,
        "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
        "group.initial.rebalance.delay.ms": "0",
        "group.min.session.timeout.ms": "1000",
        "group.consumer.heartbeat.interval.ms": "500",
        "group.consumer.min.heartbeat.interval.ms": "500",
        "group.consumer.session.timeout.ms": "6000",
        "group.consumer.min.session.timeout.ms": "3000",
        **extra,
    }


def render(properties: Mapping[str, str]) -> str:
    """The properties as a file for Java, with backslashes and line ends escaped."""
    escaped = {
        key: value.replace("\\", "\\\\").replace("\n", "\\n") for key, value in properties.items()
    }
    return "".join(f"{key}={value}\n" for key, value in escaped.items())
