"""Topics: look at them, make them, and say in plain words what is wrong with them.

For the start of the service and for `stream-fs topics`: a broker that does not answer is an error
here, and not something to wait for.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Final

from confluent_kafka import KafkaError, KafkaException
from confluent_kafka.admin._config import ConfigResource
from confluent_kafka.cimpl import NewPartitions, NewTopic

from stream_fs.checkpoint import part_bytes
from stream_fs.errors import FatalError, RetriableError
from stream_fs.kafka.clients import admin_client
from stream_fs.kafka.errors import ConnectionState, classify, diagnose_certificate, translate_errors
from stream_fs.kafka.settings import BATCH_SIZE, ClientSettings
from stream_fs.wire.dead_letters import dead_letter_limit

BROKER_DEFAULT: Final = -1
"""The number of replicas that the broker is configured for."""

_DAY_MS: Final = 86_400_000
_BATCH_BYTES: Final = 1_024
"""More than the frame of a batch with one record."""
_STATE_BATCH_BYTES: Final = 4_096
"""The same with a key of the state topic, which contains stream, group and topic."""
_BROKER_TIME: Final = {"message.timestamp.type": "LogAppendTime"}
"""Of what we write: a broker refuses records that are stamped more than an hour ahead of its own
clock, so a clock that is wrong here would stop the stream. Their content has no such time."""


@dataclass(frozen=True)
class TopicSpec:
    """A topic as it is to be created, and what must hold of one that exists."""

    name: str
    partitions: int
    replication: int = BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)
    holds_input: bool = False
    """Whether it is an input topic, which is created only on request (`--partitions`)."""
    follows: bool = False
    """Whether fewer partitions would be too few: there is one for each of another topic's."""


def input_spec(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicSpec:
    """Records to learn from: a compacted topic would lose those that a replay needs."""
    config = {
        "cleanup.policy": "delete",
        "max.message.bytes": str(largest_message + _BATCH_BYTES),
    }
    durable = _durable(replication)
    return TopicSpec(name, partitions, replication, config | durable, holds_input=True)


def rankings_spec(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicSpec:
    """Complete for a week; the newest ranking of every stream stays for ever."""
    config = {
        "cleanup.policy": "compact",
        "min.compaction.lag.ms": str(7 * _DAY_MS),
        "max.message.bytes": str(largest_message + _BATCH_BYTES),
        **_BROKER_TIME,
    }
    return TopicSpec(name, partitions, replication, config | _durable(replication))


def state_spec(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicSpec:
    """The truth: as many partitions as its input topic, the newest record of every key kept.

    Compaction leaves the newest segment alone: small ones, so that it does not grow to a gigabyte.
    A batch in it has one part of a snapshot, or several small ones.
    """
    one = part_bytes(largest_message) + _STATE_BATCH_BYTES
    several = min(largest_message, BATCH_SIZE)
    config = {
        "cleanup.policy": "compact",
        "segment.bytes": str(64 * 2**20),
        "min.cleanable.dirty.ratio": "0.2",
        "max.message.bytes": str(max(one, several)),
        **_BROKER_TIME,
    }
    return TopicSpec(name, partitions, replication, config | _durable(replication), follows=True)


def dead_letters_spec(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicSpec:
    """Bad records with the reason in headers; for a month."""
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(30 * _DAY_MS),
        "max.message.bytes": str(dead_letter_limit(largest_message)),
        **_BROKER_TIME,
    }
    return TopicSpec(name, partitions, replication, config | _durable(replication))


def missing_topic(plan: TopicSpec) -> str:
    """What to do about a topic that does not exist."""
    if plan.holds_input:
        return (
            f"topic {plan.name} does not exist: check stream.topics, or make it with "
            "`stream-fs topics create --partitions N`"
        )
    return f"topic {plan.name} does not exist: make it with `stream-fs topics create`"


def problems(plan: TopicSpec, partitions: int, config: Mapping[str, str]) -> list[str]:
    """What is wrong with a topic that exists, and what to do about it."""
    found = [] if (lacking := gap(plan, partitions)) is None else [lacking]
    for name, wanted in plan.config.items():
        has = config.get(name)
        if has is None or name not in ("cleanup.policy", *_AT_LEAST):
            continue
        fits = int(has) >= int(wanted) if name in _AT_LEAST else has == wanted
        if not fits:
            rule = "at least " if name in _AT_LEAST else ""
            found.append(
                f"topic {plan.name} has {name}={has}, and needs {rule}{wanted}: "
                f"set {name}={wanted} on the topic"
            )
    return found


def gap(plan: TopicSpec, partitions: int) -> str | None:
    """What to do about partitions that a topic lacks; None where there are enough.

    Others can work meanwhile: it happens when partitions are added to an input topic.
    """
    if not plan.follows or partitions >= plan.partitions:
        return None
    return (
        f"topic {plan.name} has {partitions} partitions, and needs {plan.partitions}, as many as "
        "its input topic: add them with `stream-fs topics create`"
    )


_AT_LEAST: Final = ("max.message.bytes", "min.compaction.lag.ms")


def _durable(replication: int) -> dict[str, str]:
    """With three replicas or more, one may be missing, and what is acknowledged is on two."""
    return {"min.insync.replicas": "2"} if replication >= 3 else {}


_LATE_SECONDS: Final = 2.0


class Topics:
    """The topics on the broker."""

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._connection = ConnectionState()
        self._admin = admin_client(settings, self._connection)

    def partitions(self, names: Sequence[str]) -> dict[str, int]:
        """The number of partitions of each of these topics that exists."""
        found = {}
        for name in names:
            doing = f"looking for topic {name}"
            with self._asking(doing):
                topic = self._admin.list_topics(name, self._settings.timeout).topics[name]
            if topic.error is None:
                found[name] = len(topic.partitions)
            elif topic.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise classify(topic.error, doing, self._connection)
        return found

    def config(self, name: str) -> dict[str, str]:
        """The configuration of a topic, defaults included."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        with self._asking(f"reading the configuration of topic {name}"):
            (answer,) = self._admin.describe_configs(
                [resource], request_timeout=self._settings.timeout
            ).values()
            entries = answer.result(self._limit)
        return {key: entry.value for key, entry in entries.items() if entry.value is not None}

    def create(self, plans: Sequence[TopicSpec]) -> list[str]:
        """Make the topics that are not there; those that are stay as they are. Which were made."""
        missing = {plan.name for plan in plans} - self.partitions([p.name for p in plans]).keys()
        wanted = [
            NewTopic(plan.name, plan.partitions, plan.replication, config=dict(plan.config))
            for plan in plans
            if plan.name in missing
        ]
        if not wanted:
            return []
        answers = self._admin.create_topics(
            wanted,
            operation_timeout=self._settings.timeout,
            request_timeout=self._settings.timeout,
        )
        doing, faster = "creating topic", KafkaError.TOPIC_ALREADY_EXISTS
        return [name for name, answer in answers.items() if self._done(doing, name, answer, faster)]

    def grow(self, plans: Sequence[TopicSpec]) -> list[str]:
        """Add the partitions that topics lack which follow others; which have got some."""
        existing = self.partitions([plan.name for plan in plans if plan.follows])
        wanted = [
            NewPartitions(plan.name, plan.partitions)
            for plan in plans
            if plan.name in existing and gap(plan, existing[plan.name]) is not None
        ]
        if not wanted:
            return []
        timeout = self._settings.timeout
        answers = self._admin.create_partitions(
            wanted, operation_timeout=timeout, request_timeout=timeout
        )
        doing, faster = "adding partitions to topic", KafkaError.INVALID_PARTITIONS
        return [name for name, answer in answers.items() if self._done(doing, name, answer, faster)]

    def gaps(self, plans: Sequence[TopicSpec]) -> list[str]:
        """Where partitions are lacking, a sentence each, with what to do."""
        existing = self.partitions([plan.name for plan in plans if plan.follows])
        found = [gap(plan, existing[plan.name]) for plan in plans if plan.name in existing]
        return [sentence for sentence in found if sentence is not None]

    def delete(self, names: Sequence[str]) -> None:
        """Take topics away, with all that is in them; those that are not there are passed over."""
        found = list(self.partitions(names))
        if not found:
            return
        timeout = self._settings.timeout
        answers = self._admin.delete_topics(
            found, operation_timeout=timeout, request_timeout=timeout
        )
        for name, answer in answers.items():
            with self._asking(f"deleting topic {name}"):
                answer.result(self._limit)

    def delete_group(self, group: str) -> None:
        """Take away a consumer group that has no member any more; none is passed over."""
        with self._asking(f"deleting consumer group {group}"):
            (answer,) = self._admin.delete_consumer_groups(
                [group], request_timeout=self._settings.timeout
            ).values()
            try:
                answer.result(self._limit)
            except KafkaException as exception:
                if exception.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise

    def check(self, plans: Sequence[TopicSpec]) -> list[str]:
        """What is wrong, a sentence each, with what to do; empty when all is well."""
        found = []
        existing = self.partitions([plan.name for plan in plans])
        for plan in plans:
            if plan.name in existing:
                found += problems(plan, existing[plan.name], self.config(plan.name))
            else:
                found.append(missing_topic(plan))
        return found

    def _done(self, doing: str, name: str, answer: Future[None], faster: int) -> bool:
        """Wait for the answer; False for `faster`, the error where another process came first."""
        with self._asking(f"{doing} {name}"):
            try:
                answer.result(self._limit)
            except KafkaException as exception:
                if exception.args[0].code() != faster:
                    raise
                return False
        return True

    @property
    def _limit(self) -> float:
        """Seconds after which the client does not keep to its own limit, and is not waited for."""
        return self._settings.timeout + _LATE_SECONDS

    @contextmanager
    def _asking(self, doing: str) -> Iterator[None]:
        """Translate errors; what could pass by itself is an error all the same."""
        try:
            with translate_errors(doing, self._connection):
                try:
                    yield
                finally:
                    self._admin.poll(0)  # what it has to say of its connection
        except TimeoutError as reason:
            raise FatalError(
                f"{doing}: no answer from kafka.bootstrap={self._settings.bootstrap} within "
                f"{self._settings.timeout:g} s"
            ) from reason
        except RetriableError as reason:
            text = f"{reason}; no answer from kafka.bootstrap={self._settings.bootstrap}"
            found = (
                diagnose_certificate(self._settings) if self._connection.of_certificates else None
            )
            raise FatalError(text if found is None else f"{text}; {found}") from reason
