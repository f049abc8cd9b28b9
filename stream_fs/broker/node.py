"""The server.properties of a node, as a function of the nodes that form the cluster."""

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


class BrokerUnavailable(StreamFsError):
    """No broker can be had here, or it did not start; the message says what is missing."""


class BrokerNotOurs(StreamFsError):
    """The broker is run by somebody else: it cannot be stopped, started or configured here."""


PLAINTEXT: Final = "PLAINTEXT"
"""The listener that every broker has; `Broker.bootstrap` is its address."""


class Broker(ABC):
    """A broker that answers, until it is taken away."""

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the plain listener, for ``bootstrap.servers``."""
        return self.address(PLAINTEXT)

    @abstractmethod
    def address(self, listener: str) -> str:
        """``host:port`` of a listener by its name; the same as long as the broker exists."""

    @abstractmethod
    def start(self) -> None:
        """Bring the broker back, on the same ports and data; return when it answers.

        Raises `BrokerUnavailable`, with the end of the broker's log, when it does not.
        """

    @abstractmethod
    def stop(self) -> None:
        """Shut the broker down in order; nothing happens when it does not run."""

    @abstractmethod
    def kill(self) -> None:
        """Take the broker away at once, as a power failure would."""

    @abstractmethod
    def log_tail(self, lines: int = 40) -> str:
        """The last lines of the broker's log; empty when there is none to read."""


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


_CANDIDATES: Final = range(20_000, 30_000)
"""Below the ports that systems hand out to outgoing connections: otherwise a client that keeps
trying to reconnect could be given the port of the very broker that is to come back."""


def free_ports(count: int) -> list[int]:
    """``count`` different ports on which nothing listens now."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_CANDIDATES, len(_CANDIDATES)):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    return found


def is_free(port: int) -> bool:
    """Whether nothing listens on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True


STARTED: Final = "Kafka Server started"
"""What Kafka logs when its listeners are open."""

START_SECONDS: Final = 120.0
"""How long a start may take; a few seconds on an idle machine."""

_LOOK_SECONDS: Final = 0.1
_ASK_SECONDS: Final = 5.0


def answers(bootstrap: str, seconds: float) -> bool:
    """Whether an admin client gets the cluster's metadata within the time."""
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    try:
        return bool(admin.list_topics(timeout=seconds).brokers)
    except KafkaException:
        return False


def await_start(
    bootstrap: str, *, announced: Callable[[], bool], running: Callable[[], bool]
) -> None:
    """Wait until the log has announced the start and the broker answers.

    Asks only after the announcement: a client that is refused first backs off, and complains.
    Raises `BrokerUnavailable` when the process ends before, or after `START_SECONDS`.
    """
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if not running():
            raise BrokerUnavailable("the broker ended while it was starting")
        if announced() and answers(bootstrap, _ASK_SECONDS):
            return
        time.sleep(_LOOK_SECONDS)
    raise BrokerUnavailable(f"the broker did not start within {START_SECONDS:.0f} s")


def read(path: Path) -> str:
    """The whole file, readable even when it is not clean UTF-8; empty when there is none."""
    return path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""


def last_lines(text: str, lines: int) -> str:
    """The last lines of a text."""
    return "\n".join(text.splitlines()[-lines:])


def tail(path: Path, lines: int = 40) -> str:
    """The last lines of a file."""
    return last_lines(read(path), lines)
