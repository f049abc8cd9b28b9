"""How the clients are configured: what was measured, what is ours, and what the user may say.

The user's librdkafka properties go over the defaults here, but not over the properties that
exactly-once rests on: those are refused by name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from confluent_kafka import KafkaException, Producer

from stream_fs.errors import InvalidParameter
from stream_fs.wire.dead_letters import dead_letter_limit

_END: Final = "stream-fs.end"
"""No property has this name: whoever is refused for it alone is right in everything before it."""

_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
"""The library is never asked about other names: at one that is not UTF-8 the process ends."""
_NO_PROPERTY: Final = "is not a property of librdkafka"
_UNKNOWN: Final = re.compile(r"^No such configuration property")
# The property goes before the message; the library may call it by another of its names.
_WORDS: Final = re.compile(
    r' (for|of) configuration property "[^"]*"|^Configuration property "\S*" '
)
_ADDRESS: Final = re.compile(
    r"((?i:plaintext|ssl|sasl_plaintext|sasl_ssl)://)?"
    r"((\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]@]+)(:(?P<port>\d{1,5}))?|[0-9A-Fa-f.]*:[0-9A-Fa-f.]*:[0-9A-Fa-f:.]*)"
    r"(/.*)?"
)
_MOST_PORTS: Final = 65_535


def refusal(name: str, value: Property) -> str | None:
    """Why the library does not take a property, in its words; None where it does.

    Properties are set one after the other before a client is made. None is made here: so nothing
    connects, and no file is opened that may be on another machine.
    """
    if not _NAME.fullmatch(name):
        return _NO_PROPERTY
    if isinstance(value, str) and not _is_text(value):
        return "is not text that the library could be given"
    try:
        Producer({name: value, _END: ""})
    except KafkaException as reason:
        said = str(reason.args[0].str()).strip()
        if _END in said:
            return None
        return _NO_PROPERTY if _UNKNOWN.match(said) else _WORDS.sub("", said)
    except (TypeError, ValueError, AttributeError) as reason:  # what Python's part of it looks at
        return f"cannot be set here: {reason}"
    raise AssertionError(f"{_END} was taken for a property")


def _is_text(value: str) -> bool:
    """Whether it is UTF-8, without the zero at which the library would stop reading."""
    return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)


def wrong_addresses(bootstrap: str) -> list[str]:
    """Of a list of brokers, what cannot be one: `host`, `host:port` or `SSL://host:port` are."""
    parts = [part.strip() for part in bootstrap.split(",")]
    return [part for part in parts if part and not _is_address(part)]


def _is_address(text: str) -> bool:
    found = _ADDRESS.fullmatch(text)
    return found is not None and 0 < int(found["port"] or 1) <= _MOST_PORTS


class Rebalance(StrEnum):
    """How the members of the consumer group share the partitions."""

    EAGER = "classic-eager"
    """Everybody gives up everything, then gets a new share."""
    COOPERATIVE = "classic-cooperative"
    """Only what moves is given up."""
    CONSUMER = "consumer"
    """The broker decides, KIP-848: Kafka 4.0 or newer."""


Property = str | int | float | bool

BATCH_SIZE: Final = 1_000_000
"""Maximum bytes of a batch of several messages: the client's default."""

_SHARED: Final[dict[str, Property]] = {
    "client.id": "stream-fs",
    # A broker that comes back is noticed within a second.
    "reconnect.backoff.max.ms": 1000,
}
_CONSUMING: Final[dict[str, Property]] = {
    # Default 1000: a full queue then pauses fetching for a second; 2 to 5 times slower.
    "fetch.queue.backoff.ms": 10,
}
_PRODUCING: Final[dict[str, Property]] = {
    # Default 100: a transaction right after another waits that long.
    "retry.backoff.ms": 10,
    # Records are flushed as soon as they are complete; nothing more is coming.
    "linger.ms": 0,
    # The same partition for a key as the Java clients choose.
    "partitioner": "murmur2_random",
}
_QUESTION_SECONDS: Final = 10.0
"""What is asked about topics and offsets is short, and so are the answers."""
_SHORTEST_SECONDS, _LONGEST_SECONDS = 2.0, 300.0
"""Of what the client accepts, beside a fetch that waits."""

_OWN: Final = {
    "bootstrap.servers": "it is a setting of its own, kafka.bootstrap",
    "metadata.broker.list": "it is a setting of its own, kafka.bootstrap",
    "group.id": "it is a setting of its own, kafka.group",
    "group.protocol": "it is a setting of its own, kafka.protocol",
    "partition.assignment.strategy": "it is a setting of its own, kafka.protocol",
    "transaction.timeout.ms": "it is a setting of its own, kafka.transaction_timeout",
    "message.max.bytes": "it is a setting of its own, kafka.largest_message",
    "transactional.id": "ownership of a partition is its transactional id",
    "enable.idempotence": "transactions need it",
    "enable.gapless.guarantee": "transactions need it as it is",
    "acks": "transactions need all replicas",
    "request.required.acks": "transactions need all replicas",
    "message.timeout.ms": "it follows kafka.transaction_timeout",
    "delivery.timeout.ms": "it follows kafka.transaction_timeout",
    "delivery.report.only.error": "the offsets of what was sent are part of the state",
    "enable.auto.commit": "the state topic alone says where to continue",
    "auto.commit.enable": "the state topic alone says where to continue",
    "enable.auto.offset.store": "the state topic alone says where to continue",
    "auto.offset.reset": "an offset that is gone must stop the stream, not skip data",
    "isolation.level": "what is not committed may vanish again, and is never read",
    "enable.partition.eof": "the ends of partitions are recognised by it",
    "allow.auto.create.topics": "topics are made by `stream-fs topics create`",
}
_NOT_KIP_848: Final = ("session.timeout.ms", "heartbeat.interval.ms", "group.protocol.type")

# Who reads a property: the others only warn of it.
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
    """Raise for a number that only the client can parse, such as 0x10000."""
    try:
        int(value)
    except ValueError:
        raise InvalidParameter(f"{name} should be a whole number, got {value!r}") from None


@dataclass(frozen=True)
class ClientSettings:
    """Where the brokers are, and how to speak with them; times in seconds."""

    bootstrap: str
    group: str
    rebalance: Rebalance = Rebalance.COOPERATIVE
    transaction_timeout: float = 60.0
    """After this the broker voids an open transaction and fences its owner."""
    timeout: float = 30.0
    """The longest that one call waits for the broker."""
    largest_message: int = 1_000_000
    """Bytes of the largest input record or ranking; a dead letter may have 65,536 more."""
    properties: Mapping[str, Property] = field(default_factory=dict, repr=False)
    """More librdkafka properties; may hold secrets, and is not shown."""

    def __post_init__(self) -> None:
        """Refuse what cannot work, by name."""
        if not self.bootstrap.strip():
            raise InvalidParameter("bootstrap: give host:port of at least one broker")
        if not self.group.strip():
            raise InvalidParameter("group: give the consumer group a name")
        for name in ("transaction_timeout", "timeout", "largest_message"):
            if not getattr(self, name) > 0:
                raise InvalidParameter(f"{name}: {getattr(self, name)} is not above zero")
        for name, value in self.properties.items():
            if not isinstance(value, str | int | float | bool):
                raise InvalidParameter(f"{name}: a property is a text, a number, or true or false")
            if reason := _OWN.get(name):
                raise InvalidParameter(f"{name} cannot be set: {reason}")
            if name == "batch.size":
                _require_whole(name, value)
            if self.rebalance is Rebalance.CONSUMER and name in _NOT_KIP_848:
                raise InvalidParameter(
                    f"{name} cannot be set where kafka.protocol is consumer: "
                    f"the broker decides it (group.consumer.{name})"
                )

    def consumer(self) -> dict[str, Any]:
        """For the member of the group that reads the input."""
        chosen = {
            Rebalance.EAGER: {"partition.assignment.strategy": "range"},
            Rebalance.COOPERATIVE: {"partition.assignment.strategy": "cooperative-sticky"},
            Rebalance.CONSUMER: {"group.protocol": "consumer"},
        }[self.rebalance]
        return {
            **self._reading({}),
            **chosen,
            "group.id": self.group,
            "enable.partition.eof": True,  # for the lag, see `KafkaConsumer.unread`
        }

    def state_reader(self) -> dict[str, Any]:
        """For reading a state partition by position, outside of the group."""
        return {
            # The end of a partition is told by a fetch that found nothing, and whoever is placed
            # elsewhere waits for the one that is under way: it must not take long.
            **self._reading({"fetch.wait.max.ms": 2}),
            "group.id": self.group,  # never joined, but the client asks for one
            "enable.partition.eof": True,
        }

    def ranking_reader(self) -> dict[str, Any]:
        """For whoever looks at rankings: outside of the group, and without leaving a trace."""
        return {
            # Should the topic be made anew, there is nothing to do but to begin with it.
            **self._reading({"auto.offset.reset": "earliest"}),
            "group.id": self.group,  # never joined, but the client asks for one
            "enable.partition.eof": True,
        }

    def producer(self, transactional_id: str) -> dict[str, Any]:
        """For the transactional producer with this id."""
        return {
            **_SHARED,
            **self._unanswered(min(self.transaction_timeout / 2, _LONGEST_SECONDS)),
            **_PRODUCING,
            **self._without(_CONSUMER_ONLY),
            "bootstrap.servers": self.bootstrap,
            "transactional.id": transactional_id,
            "transaction.timeout.ms": round(self.transaction_timeout * 1000),
            **self._sizes(),
        }

    def feeder(self, largest_batch: int = BATCH_SIZE) -> dict[str, Any]:
        """For the producer that feeds an input topic: every record once, in its order."""
        return {
            **_SHARED,
            **_PRODUCING,
            "linger.ms": 5,  # here more is coming
            # Default 10: so long all records without a key go to the same partition.
            "sticky.partitioning.linger.ms": 0,
            **self._without(_CONSUMER_ONLY),
            "bootstrap.servers": self.bootstrap,
            "enable.idempotence": True,
            "message.timeout.ms": round(self.transaction_timeout * 1000),
            **self._sizes(largest_batch),
        }

    def admin(self) -> dict[str, Any]:
        """For questions about topics and offsets."""
        both = re.compile(f"{_CONSUMER_ONLY.pattern}|{_PRODUCER_ONLY.pattern}")
        short = self._unanswered(_QUESTION_SECONDS)
        return {**_SHARED, **short, **self._without(both), "bootstrap.servers": self.bootstrap}

    def redacted(self, text: str) -> str:
        """The text without the values of properties that may be secret."""
        for name, value in self.properties.items():
            if is_secret(name) and str(value):
                text = text.replace(str(value), "***")
        return text

    def _reading(self, fixed: Mapping[str, Property]) -> dict[str, Any]:
        return {
            **_SHARED,
            **self._unanswered(_LONGEST_SECONDS),
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
        """The largest message, and the largest batch of several.

        A broker limits the size of batches, and the client does not divide one that is refused, so
        a batch must not be larger than what every topic allows.
        """
        wanted = int(self.properties.get("batch.size", BATCH_SIZE))
        return {
            "message.max.bytes": dead_letter_limit(self.largest_message),
            "batch.size": min(wanted, largest_batch, BATCH_SIZE, self.largest_message),
        }

    def _unanswered(self, most: float) -> dict[str, Property]:
        """When a request counts as lost, and its connection with it.

        A machine between us and the broker may have forgotten the connection: neither side is told,
        and all requests behind this one wait as long. By default that would be a minute.
        """
        seconds = min(max(self.timeout, _SHORTEST_SECONDS), most)
        return {"socket.timeout.ms": round(seconds * 1000)}

    def _without(self, unread: re.Pattern[str]) -> dict[str, Property]:
        return {name: value for name, value in self.properties.items() if not unread.match(name)}
