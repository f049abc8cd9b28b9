"""Specifications of the stream's topics, and their creation and check on the broker.

Used at the start of the service and by `stream-fs topics`: a broker that does not answer is an
error here, and is not waited for.
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
"""Use the number of replicas that the broker is configured for."""

_AT_LEAST: Final = ("max.message.bytes", "min.compaction.lag.ms")
"""Settings whose value may also be larger."""
_SPARE_SECONDS: Final = 2.0
"""Added to the client's own timeout, which it may exceed (librdkafka #1869)."""
_DAY_MS: Final = 86_400_000
_BATCH_BYTES: Final = 1_024
"""More than the frame of a batch with one record."""
_STATE_BATCH_BYTES: Final = 4_096
"""The same, with a key of the state topic, which contains stream, group and topic."""
_BROKER_TIME: Final = {"message.timestamp.type": "LogAppendTime"}
"""Of topics that the service writes: a broker refuses records with timestamps more than an hour
ahead of its clock, so a wrong clock of this machine would stop the stream."""


@dataclass(frozen=True)
class TopicSpec:
    """The configuration to create a topic with, and to check an existing one against."""

    name: str
    partitions: int
    replication: int = BROKER_DEFAULT
    config: Mapping[str, str] = field(default_factory=dict)
    holds_input: bool = False
    """Whether it is an input topic, which is created only on request (`--partitions`)."""
    follows: bool = False
    """Whether it needs at least this number of partitions: one for each of its input topic."""


def input_spec(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicSpec:
    """Input records: not compacted, as that would delete records that a replay needs."""
    config = {
        "cleanup.policy": "delete",
        "max.message.bytes": str(largest_message + _BATCH_BYTES),
    }
    durable = _durable(replication)
    return TopicSpec(name, partitions, replication, config | durable, holds_input=True)


def rankings_spec(
    name: str, partitions: int, largest_message: int, replication: int = BROKER_DEFAULT
) -> TopicSpec:
    """Rankings: all for a week, and the newest of every key for ever."""
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
    """States: the newest record of every key, in as many partitions as the input topic has.

    Segments are small because compaction skips the newest one, which would grow to a gigabyte. A
    batch holds one part of a snapshot, or several small ones.
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
    """Bad records, with the reason in headers, for a month."""
    config = {
        "cleanup.policy": "delete",
        "retention.ms": str(30 * _DAY_MS),
        "max.message.bytes": str(dead_letter_limit(largest_message)),
        **_BROKER_TIME,
    }
    return TopicSpec(name, partitions, replication, config | _durable(replication))


def missing_topic(spec: TopicSpec) -> str:
    """A sentence about a topic that does not exist, with advice."""
    if spec.holds_input:
        return (
            f"topic {spec.name} does not exist: check stream.topics, or create it with "
            "`stream-fs topics create --partitions N`"
        )
    return f"topic {spec.name} does not exist: create it with `stream-fs topics create`"


def problems(spec: TopicSpec, partitions: int, config: Mapping[str, str]) -> list[str]:
    """Sentences about what is wrong with a topic that exists, with advice."""
    found = [] if (lacking := gap(spec, partitions)) is None else [lacking]
    for name, wanted in spec.config.items():
        has = config.get(name)
        if has is None or name not in ("cleanup.policy", *_AT_LEAST):
            continue
        fits = int(has) >= int(wanted) if name in _AT_LEAST else has == wanted
        if not fits:
            rule = "at least " if name in _AT_LEAST else ""
            found.append(
                f"topic {spec.name} has {name}={has}, and needs {rule}{wanted}: "
                f"set {name}={wanted} on the topic"
            )
    return found


def gap(spec: TopicSpec, partitions: int) -> str | None:
    """A sentence about missing partitions, with advice; None where there are enough.

    Happens when partitions are added to an input topic; the other partitions continue meanwhile.
    """
    if not spec.follows or partitions >= spec.partitions:
        return None
    return (
        f"topic {spec.name} has {partitions} partitions, and needs {spec.partitions}, as many as "
        "its input topic: add them with `stream-fs topics create`"
    )


def _durable(replication: int) -> dict[str, str]:
    """With three or more replicas, acknowledged records are on two, and one may be missing."""
    return {"min.insync.replicas": "2"} if replication >= 3 else {}


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
            with self._translate(doing):
                topic = self._admin.list_topics(name, self._settings.timeout).topics[name]
            if topic.error is None:
                found[name] = len(topic.partitions)
            elif topic.error.code() != KafkaError.UNKNOWN_TOPIC_OR_PART:
                raise classify(topic.error, doing, self._connection)
        return found

    def config(self, name: str) -> dict[str, str]:
        """The configuration of a topic, defaults included."""
        resource = ConfigResource(ConfigResource.Type.TOPIC, name)
        with self._translate(f"reading the configuration of topic {name}"):
            (answer,) = self._admin.describe_configs(
                [resource], request_timeout=self._settings.timeout
            ).values()
            entries = answer.result(self._limit)
        return {key: entry.value for key, entry in entries.items() if entry.value is not None}

    def create(self, specs: Sequence[TopicSpec]) -> list[str]:
        """Create the topics that do not exist; returns their names."""
        missing = {spec.name for spec in specs} - self.partitions([p.name for p in specs]).keys()
        wanted = [
            NewTopic(spec.name, spec.partitions, spec.replication, config=dict(spec.config))
            for spec in specs
            if spec.name in missing
        ]
        if not wanted:
            return []
        answers = self._admin.create_topics(
            wanted,
            operation_timeout=self._settings.timeout,
            request_timeout=self._settings.timeout,
        )
        doing, done_before = "creating topic", KafkaError.TOPIC_ALREADY_EXISTS
        return [
            name for name, answer in answers.items() if self._done(doing, name, answer, done_before)
        ]

    def grow(self, specs: Sequence[TopicSpec]) -> list[str]:
        """Add missing partitions to topics that follow others; returns the names of these."""
        existing = self.partitions([spec.name for spec in specs if spec.follows])
        wanted = [
            NewPartitions(spec.name, spec.partitions)
            for spec in specs
            if spec.name in existing and gap(spec, existing[spec.name]) is not None
        ]
        if not wanted:
            return []
        timeout = self._settings.timeout
        answers = self._admin.create_partitions(
            wanted, operation_timeout=timeout, request_timeout=timeout
        )
        doing, done_before = "adding partitions to topic", KafkaError.INVALID_PARTITIONS
        return [
            name for name, answer in answers.items() if self._done(doing, name, answer, done_before)
        ]

    def gaps(self, specs: Sequence[TopicSpec]) -> list[str]:
        """Sentences about missing partitions, with advice."""
        existing = self.partitions([spec.name for spec in specs if spec.follows])
        found = [gap(spec, existing[spec.name]) for spec in specs if spec.name in existing]
        return [sentence for sentence in found if sentence is not None]

    def delete(self, names: Sequence[str]) -> None:
        """Delete those of the topics that exist."""
        found = list(self.partitions(names))
        if not found:
            return
        timeout = self._settings.timeout
        answers = self._admin.delete_topics(
            found, operation_timeout=timeout, request_timeout=timeout
        )
        for name, answer in answers.items():
            with self._translate(f"deleting topic {name}"):
                answer.result(self._limit)

    def delete_group(self, group: str) -> None:
        """Delete a consumer group without members, if it exists."""
        with self._translate(f"deleting consumer group {group}"):
            (answer,) = self._admin.delete_consumer_groups(
                [group], request_timeout=self._settings.timeout
            ).values()
            try:
                answer.result(self._limit)
            except KafkaException as exception:
                if exception.args[0].code() != KafkaError.GROUP_ID_NOT_FOUND:
                    raise

    def check(self, specs: Sequence[TopicSpec]) -> list[str]:
        """Sentences about what is wrong with the topics, with advice; empty if nothing is."""
        found = []
        existing = self.partitions([spec.name for spec in specs])
        for spec in specs:
            if spec.name in existing:
                found += problems(spec, existing[spec.name], self.config(spec.name))
            else:
                found.append(missing_topic(spec))
        return found

    def _done(self, doing: str, name: str, answer: Future[None], done_before: int) -> bool:
        """Await the answer; False for the error `done_before`: another process was faster."""
        with self._translate(f"{doing} {name}"):
            try:
                answer.result(self._limit)
            except KafkaException as exception:
                if exception.args[0].code() != done_before:
                    raise
                return False
        return True

    @property
    def _limit(self) -> float:
        """Longest wait for a result of the client, in seconds."""
        return self._settings.timeout + _SPARE_SECONDS

    @contextmanager
    def _translate(self, doing: str) -> Iterator[None]:
        """Translate errors; also a retriable one is fatal here."""
        try:
            with translate_errors(doing, self._connection):
                try:
                    yield
                finally:
                    self._admin.poll(0)  # serves `error_cb`
        except TimeoutError as reason:
            raise FatalError(
                f"{doing}: no answer from kafka.bootstrap={self._settings.bootstrap} within "
                f"{self._settings.timeout:g} s"
            ) from reason
        except RetriableError as reason:
            text = f"{reason}; no answer from kafka.bootstrap={self._settings.bootstrap}"
            found = (
                diagnose_certificate(self._settings) if self._connection.is_tls_failure else None
            )
            raise FatalError(text if found is None else f"{text}; {found}") from reason
