"""A node of Kafka: its interface, its server.properties, free ports for it, and its readiness."""

from __future__ import annotations

import random
import socket
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from stream_fs.errors import StreamFsError

PLAINTEXT: Final = "PLAINTEXT"
"""The listener of every broker; `Broker.bootstrap` is its address."""
CONTROLLER: Final = "CONTROLLER"
CLUSTER_ID: Final = "c3RyZWFtLWZzLWJyb2tlcg"
"""Sixteen bytes in base64, as Kafka requires; the same for every development cluster."""
STARTED: Final = "Kafka Server started"
"""Logged by Kafka when its listeners are open."""
START_SECONDS: Final = 120.0
"""Timeout of a start, which takes a few seconds on an idle machine."""
_POLL_SECONDS: Final = 0.1
_ANSWER_SECONDS: Final = 5.0
_CANDIDATES: Final = range(20_000, 30_000)
"""Below the ports of outgoing connections: otherwise a client that reconnects could get the port of
the broker that is to be started again."""


class BrokerUnavailable(StreamFsError):
    """No broker is available, or it did not start; the message says what is missing."""


class BrokerNotOwned(StreamFsError):
    """The broker was not started by this process: it cannot be stopped or configured here."""


class Broker(ABC):
    """A broker, which may be stopped and started again."""

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the plain listener, for ``bootstrap.servers``."""
        return self.address(PLAINTEXT)

    @abstractmethod
    def address(self, listener: str) -> str:
        """``host:port`` of a listener; it does not change while the broker exists."""

    @abstractmethod
    def start(self) -> None:
        """Start the broker on the same ports and data, and wait until it answers.

        Raises `BrokerUnavailable`, with the end of the broker's log, when it does not answer.
        """

    @abstractmethod
    def stop(self) -> None:
        """Shut the broker down gracefully, if it runs."""

    @abstractmethod
    def kill(self) -> None:
        """End the broker at once, as a power failure would."""

    @abstractmethod
    def log_tail(self, lines: int = 40) -> str:
        """The last lines of the broker's log; empty if it is not available."""


@dataclass(frozen=True)
class Node:
    """One Kafka process, both broker and controller."""

    id: int
    host: str
    """The name at which clients reach it."""
    bind: str
    """The address to which its client listeners are bound."""
    ports: Mapping[str, int]
    """Ports by listener name, including `CONTROLLER`."""
    data: str
    """The directory of its logs and metadata."""
    advertised: Mapping[str, str] = field(default_factory=dict)
    """Addresses that clients get in place of the node's own, by listener name."""

    def address(self, listener: str) -> str:
        """``host:port`` of a listener; controllers are reached on this machine only."""
        host = "127.0.0.1" if listener == CONTROLLER else self.host
        return f"{host}:{self.ports[listener]}"


def server_properties(
    node: Node,
    nodes: Sequence[Node],
    protocols: Mapping[str, str],
    extra: Mapping[str, str],
) -> dict[str, str]:
    """The properties of ``node`` in the cluster of ``nodes`` (itself included).

    ``protocols`` are the security protocols of the client listeners; ``extra`` overrides the
    result. Internal topics are replicated to every node and written by a majority. Timeouts are
    short, as tests wait for them: a killed broker can return only after its session has expired.
    """
    replicas = str(len(nodes))
    majority = str(len(nodes) // 2 + 1)
    clients = [f"{name}://{node.bind}:{node.ports[name]}" for name in protocols]
    advertised = {name: node.address(name) for name in protocols} | dict(node.advertised)
    security = {**protocols, CONTROLLER: "PLAINTEXT"}
    return {
        "process.roles": "broker,controller",
        "node.id": str(node.id),
        "controller.quorum.bootstrap.servers": ",".join(n.address(CONTROLLER) for n in nodes),
        "controller.listener.names": CONTROLLER,
        "listeners": ",".join([*clients, f"{CONTROLLER}://{node.address(CONTROLLER)}"]),
        "advertised.listeners": ",".join(f"{name}://{advertised[name]}" for name in protocols),
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
    """The properties in the file format of Java, with backslashes and line ends escaped."""
    escaped = {
        key: value.replace("\\", "\\\\").replace("\n", "\\n") for key, value in properties.items()
    }
    return "".join(f"{key}={value}\n" for key, value in escaped.items())


def free_ports(count: int) -> list[int]:
    """``count`` different ports on which nothing listens."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_CANDIDATES, len(_CANDIDATES)):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    return found


def is_free(port: int) -> bool:
    """Whether nothing listens on the port."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


def answers(bootstrap: str, seconds: float) -> bool:
    """Whether an admin client gets the metadata of the cluster in time."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=seconds).brokers)
    except KafkaException:
        return False


def await_start(
    bootstrap: str, *, announced: Callable[[], bool], running: Callable[[], bool]
) -> None:
    """Wait until the log announces the start and the broker answers.

    Connects only after the announcement: a refused client backs off and logs errors. Raises
    `BrokerUnavailable` when the process ends before that, or after `START_SECONDS`.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not running():
            raise BrokerUnavailable("the broker ended while it was starting")
        if announced() and answers(bootstrap, _ANSWER_SECONDS):
            return
        time.sleep(_POLL_SECONDS)
    raise BrokerUnavailable(f"the broker did not start within {START_SECONDS:.0f} s")


def read(path: Path) -> str:
    """The text of a file, with invalid UTF-8 replaced; empty if there is no file."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def last_lines(text: str, lines: int) -> str:
    """The last lines of a text."""
    return "\n".join(text.splitlines()[-lines:])


def tail(path: Path, lines: int = 40) -> str:
    """The last lines of a file."""
    return last_lines(read(path), lines)
