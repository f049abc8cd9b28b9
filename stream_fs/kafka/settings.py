"""The configuration of every client: measured defaults, fixed properties, and the user's own.

The user's librdkafka properties override the defaults here, except those on which exactly-once
delivery depends: these are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final, TypeAlias

from stream_fs.errors import InvalidParameter
from stream_fs.wire.dead_letters import dead_letter_limit

Property: TypeAlias = str | int | float | bool


class Rebalance(StrEnum):
    """How the members of the consumer group share the partitions."""

    EAGER = "classic-eager"
    """Every member gives up all its partitions, then gets a new assignment."""
    COOPERATIVE = "classic-cooperative"
    """Only partitions that move are given up."""
    CONSUMER = "consumer"
    """The broker computes the assignment, KIP-848: Kafka 4.0 or newer."""


BATCH_SIZE: Final = 1_000_000
"""Maximum bytes of a batch of several messages: the client's default."""

_SHARED: Final[dict[str, Property]] = {
    "client.id": "stream-fs",
    # Reconnect within a second to a broker that is back.
    "reconnect.backoff.max.ms": 1000,
}
_CONSUMING: Final[dict[str, Property]] = {
    # Default 1000: a full queue then pauses fetching for a second; 2 to 5 times slower.
    "fetch.queue.backoff.ms": 10,
}
_PRODUCING: Final[dict[str, Property]] = {
    # Default 100: a transaction right after another waits that long.
    "retry.backoff.ms": 10,
    # Every send is complete and is flushed at once.
    "linger.ms": 0,
    # The same partition for a key as the Java clients choose.
    "partitioner": "murmur2_random",
}
_ADMIN_SECONDS: Final = 10.0
"""Longest socket timeout of requests about topics and offsets, which are small."""
_SHORTEST_SECONDS, _LONGEST_SECONDS = 2.0, 300.0
"""Bounds of the socket timeout: longer than a fetch waits, and what the client accepts."""

_FIXED: Final = {
    "bootstrap.servers": "it is set by kafka.bootstrap",
    "metadata.broker.list": "it is set by kafka.bootstrap",
    "group.id": "it is set by kafka.group",
    "group.protocol": "it is set by kafka.protocol",
    "partition.assignment.strategy": "it is set by kafka.protocol",
    "transaction.timeout.ms": "it is set by kafka.transaction_timeout",
    "message.max.bytes": "it is set by kafka.largest_message",
    "transactional.id": "it identifies the owner of a partition",
    "enable.idempotence": "transactions need it",
    "enable.gapless.guarantee": "transactions need its default",
    "acks": "transactions need all replicas",
    "request.required.acks": "transactions need all replicas",
    "message.timeout.ms": "it follows kafka.transaction_timeout",
    "delivery.timeout.ms": "it follows kafka.transaction_timeout",
    "delivery.report.only.error": "the offsets of sent records are part of the state",
    "enable.auto.commit": "the offset to continue from is kept in the state topic",
    "auto.commit.enable": "the offset to continue from is kept in the state topic",
    "enable.auto.offset.store": "the offset to continue from is kept in the state topic",
    "auto.offset.reset": "an offset that no longer exists must stop the stream, not skip records",
    "isolation.level": "records that are not committed must not be read",
    "enable.partition.eof": "it is needed to detect the end of a partition",
    "allow.auto.create.topics": "topics are created by `stream-fs topics create`",
}
_NOT_KIP_848: Final = ("session.timeout.ms", "heartbeat.interval.ms", "group.protocol.type")

# Properties of one kind of client: the other kind only logs a warning about them.
_CONSUMER_ONLY: Final = re.compile(
    r"(fetch|queued|group|session|heartbeat|consume|auto)\."
    r"|(max\.poll\.interval\.ms|max\.partition\.fetch\.bytes|check\.crcs)$"
)
_PRODUCER_ONLY: Final = re.compile(
    r"(queue\.buffering|linger|batch|compression|partitioner|sticky\.partitioning)(\.|$)"
    r"|(retry\.backoff(\.max)?\.ms|retries|message\.send\.max\.retries|request\.timeout\.ms)$"
)
_SECRET: Final = re.compile(
    r"password|passphrase|secret|jaas|oauthbearer\.config|key\.pem|token(?!.*url)"
)


def is_secret(name: str) -> bool:
    """Whether a librdkafka property of this name holds a secret."""
    return _SECRET.search(name) is not None


def _require_whole(name: str, value: Property) -> None:
    """Refuse a number that only the client can parse, such as 0x10000."""
    try:
        int(value)
    except ValueError:
        raise InvalidParameter(f"{name} should be a whole number, got {value!r}") from None


@dataclass(frozen=True)
class ClientSettings:
    """Addresses, group, timeouts in seconds and properties of all clients."""

    bootstrap: str
    group: str
    rebalance: Rebalance = Rebalance.COOPERATIVE
    transaction_timeout: float = 60.0
    """After this the broker aborts an open transaction and fences its producer."""
    timeout: float = 30.0
    """Longest wait of one call for the broker."""
    largest_message: int = 1_000_000
    """Bytes of the largest input record or ranking; a dead letter may have 65,536 more."""
    properties: Mapping[str, Property] = field(default_factory=dict, repr=False)
    """More librdkafka properties; may contain secrets, and is not shown."""

    def __post_init__(self) -> None:
        """Refuse values that cannot work, by name."""
        if not self.bootstrap.strip():
            raise InvalidParameter("bootstrap: should be host:port of at least one broker")
        if not self.group.strip():
            raise InvalidParameter("group: should not be empty")
        for name in ("transaction_timeout", "timeout", "largest_message"):
            if not getattr(self, name) > 0:
                raise InvalidParameter(f"{name}: {getattr(self, name)} is not above 0")
        for name, value in self.properties.items():
            if not isinstance(value, str | int | float | bool):
                raise InvalidParameter(f"{name}: a property is a string, a number, true or false")
            if reason := _FIXED.get(name):
                raise InvalidParameter(f"{name} cannot be set: {reason}")
            if name == "batch.size":
                _require_whole(name, value)
            if self.rebalance is Rebalance.CONSUMER and name in _NOT_KIP_848:
                raise InvalidParameter(
                    f"{name} cannot be set where kafka.protocol is consumer: "
                    f"the broker decides it (group.consumer.{name})"
                )

    def consumer(self) -> dict[str, Any]:
        """Properties of the group member that reads the input."""
        chosen = {
            Rebalance.EAGER: {"partition.assignment.strategy": "range"},
            Rebalance.COOPERATIVE: {"partition.assignment.strategy": "cooperative-sticky"},
            Rebalance.CONSUMER: {"group.protocol": "consumer"},
        }[self.rebalance]
        return {
            **self._reading({}),
            **chosen,
            "group.id": self.group,
            "enable.partition.eof": True,  # for `KafkaConsumer.unread`
        }

    def state_reader(self) -> dict[str, Any]:
        """Properties of a reader of state partitions by position, outside of the group."""
        return {
            # An empty fetch reports the end of a partition, and a seek waits for the fetch in
            # flight: neither must take long.
            **self._reading({"fetch.wait.max.ms": 2}),
            "group.id": self.group,  # never joined, but required by the client
            "enable.partition.eof": True,
        }

    def ranking_reader(self) -> dict[str, Any]:
        """Properties of a reader of rankings, outside of the group and without commits."""
        return {
            # A topic that was deleted and created again is read from its beginning.
            **self._reading({"auto.offset.reset": "earliest"}),
            "group.id": self.group,  # never joined, but required by the client
            "enable.partition.eof": True,
        }

    def transactional_producer(self, transactional_id: str) -> dict[str, Any]:
        """Properties of the transactional producer with this id."""
        return {
            **_SHARED,
            **self._socket_timeout(min(self.transaction_timeout / 2, _LONGEST_SECONDS)),
            **_PRODUCING,
            **self._without(_CONSUMER_ONLY),
            "bootstrap.servers": self.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": round(self.transaction_timeout * 1000),
            **self._sizes(),
        }

    def record_producer(self, largest_batch: int = BATCH_SIZE) -> dict[str, Any]:
        """Properties of a producer of input records: every record once, in order."""
        return {
            **_SHARED,
            **_PRODUCING,
            "linger.ms": 5,  # more records follow
            # Default 10, during which all records without a key go to the same partition.
            "sticky.partitioning.linger.ms": 0,
            **self._without(_CONSUMER_ONLY),
            "bootstrap.servers": self.bootstrap,
            "enable.idempotence": True,
            "message.timeout.ms": round(self.transaction_timeout * 1000),
            **self._sizes(largest_batch),
        }

    def admin(self) -> dict[str, Any]:
        """Properties of the client that manages topics and reads offsets."""
        both = re.compile(f"{_CONSUMER_ONLY.pattern}|{_PRODUCER_ONLY.pattern}")
        short = self._socket_timeout(_ADMIN_SECONDS)
        return {**_SHARED, **short, **self._without(both), "bootstrap.servers": self.bootstrap}

    def redacted(self, text: str) -> str:
        """The text with the values of secret properties replaced by `***`."""
        for name, value in self.properties.items():
            if is_secret(name) and str(value):
                text = text.replace(str(value), "***")
        return text

    def _reading(self, fixed: Mapping[str, Property]) -> dict[str, Any]:
        return {
            **_SHARED,
            **self._socket_timeout(_LONGEST_SECONDS),
            **_CONSUMING,
            **self._without(_PRODUCER_ONLY),
            "bootstrap.servers": self.bootstrap,
            "enable.auto.commit": False,
            "enable.auto.offset.store": False,
            "auto.offset.reset": "error",
            "allow.auto.create.topics": False,
            "isolation.level": "read_committed",
            **fixed,
        }

    def _sizes(self, largest_batch: int = BATCH_SIZE) -> dict[str, Property]:
        """The largest message, and the largest batch of several messages.

        A broker limits the size of batches, and the client does not divide one that is refused: a
        batch must not be larger than every topic allows.
        """
        wanted = int(self.properties.get("batch.size", BATCH_SIZE))
        return {
            "message.max.bytes": dead_letter_limit(self.largest_message),
            "batch.size": min(wanted, largest_batch, BATCH_SIZE, self.largest_message),
        }

    def _socket_timeout(self, longest: float) -> dict[str, Property]:
        """Time after which a request counts as lost, and its connection is closed.

        A firewall or proxy may drop a connection without notice to either side; all later requests
        wait behind the lost one. The default is one minute.
        """
        seconds = min(max(self.timeout, _SHORTEST_SECONDS), longest)
        return {"socket.timeout.ms": round(seconds * 1000)}

    def _without(self, excluded: re.Pattern[str]) -> dict[str, Property]:
        return {name: value for name, value in self.properties.items() if not excluded.match(name)}


_ADDRESS: Final = re.compile(
    r"((?i:plaintext|ssl|sasl_plaintext|sasl_ssl)://)?"
    r"((\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]@]+)(:(?P<port>\d{1,5}))?|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)"
    r"(/.*)?"
)
_MAX_PORT: Final = 65_535


def wrong_addresses(bootstrap: str) -> list[str]:
    """The invalid entries of a broker list; valid are `host`, `host:port`, `SSL://host:port`."""
    parts = [part.strip() for part in bootstrap.split(",")]
    return [part for part in parts if part and not _is_address(part)]


def _is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found["port"] or 1) <= _MAX_PORT
