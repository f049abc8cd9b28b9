"""Factories of librdkafka clients: each with its properties, connection state and the logger."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer, TopicPartition
from confluent_kafka.admin import AdminClient

from stream_fs.errors import InvalidParameter
from stream_fs.kafka.errors import ConnectionState
from stream_fs.kafka.librdkafka import LOGGER
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import Partition

Client = TypeVar("Client")
Heartbeat: TypeAlias = Callable[[], None]
"""Called before each blocking call of a client, by the thread that waits for it: several calls in a
row may take longer than the timeout of one."""


def no_heartbeat() -> None:
    """The `Heartbeat` of clients without a watchdog."""


def topic_partitions(offsets: Mapping[Partition, int]) -> list[TopicPartition]:
    """Partitions with offsets, as the client expects them."""
    return [TopicPartition(*partition, offset) for partition, offset in offsets.items()]


def input_consumer(
    settings: ClientSettings, connection: ConnectionState, on_commit: Callable[..., None]
) -> Consumer:
    """A member of the consumer group that has not subscribed yet."""
    properties = {**settings.consumer(), "on_commit": on_commit}
    return _create(Consumer, properties, settings, connection)


def state_consumer(settings: ClientSettings, connection: ConnectionState) -> Consumer:
    """A reader of committed records by position."""
    return _create(Consumer, settings.state_reader(), settings, connection)


def ranking_consumer(settings: ClientSettings, connection: ConnectionState) -> Consumer:
    """A reader of rankings."""
    return _create(Consumer, settings.ranking_reader(), settings, connection)


def transactional_producer(
    settings: ClientSettings, transactional_id: str, connection: ConnectionState
) -> Producer:
    """A producer that has not acquired its transactional id yet."""
    return _create(
        Producer, settings.transactional_producer(transactional_id), settings, connection
    )


def idempotent_producer(
    settings: ClientSettings, connection: ConnectionState, largest_batch: int
) -> Producer:
    """An idempotent producer for input topics."""
    return _create(Producer, settings.record_producer(largest_batch), settings, connection)


def admin_client(settings: ClientSettings, connection: ConnectionState) -> AdminClient:
    """A client that manages topics and reads offsets."""
    return _create(AdminClient, settings.admin(), settings, connection)


def _create(
    client: Callable[[dict[str, Any]], Client],
    properties: Mapping[str, Any],
    settings: ClientSettings,
    connection: ConnectionState,
) -> Client:
    try:
        return client({**properties, "error_cb": connection.record_error, "logger": LOGGER})
    except (KafkaException, TypeError, ValueError) as reason:
        text = reason.args[0].str() if isinstance(reason, KafkaException) else str(reason)
        # Without the cause, which contains the secrets.
        raise InvalidParameter(f"a Kafka property: {settings.redacted(text)}") from None
