"""Clients of the library, each with its properties, a place for its troubles, and our logger."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias, TypeVar

from confluent_kafka import Consumer, KafkaException, Producer
from confluent_kafka.admin import AdminClient

from stream_fs.errors import InvalidParameter
from stream_fs.kafka.errors import ConnectionState
from stream_fs.kafka.settings import ClientSettings

LOGGER: Final = logging.getLogger("stream_fs.kafka")
"""What librdkafka logs comes here, from within the calls that serve a client's events."""

Client = TypeVar("Client")
Progress: TypeAlias = Callable[[], None]
"""Called before each call of a client that has a time limit of its own, by the thread that waits
for it. Several such calls in a row may take longer than the limit of one."""


class _WithoutAttempts(logging.Filter):
    """Leaves out failed attempts to connect: every client tries every second in an outage.

    `ConnectionState` tells of the outage once; the attempts are shown at level DEBUG.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        attempt = isinstance(record.args, tuple) and record.args[:1] == ("FAIL",)
        return not attempt or LOGGER.isEnabledFor(logging.DEBUG)


LOGGER.addFilter(_WithoutAttempts())


def unobserved() -> None:
    """The `Progress` of clients that no watchdog observes."""


def input_consumer(
    settings: ClientSettings, connection: ConnectionState, on_commit: Callable[..., None]
) -> Consumer:
    """A member of the consumer group, not subscribed yet."""
    properties = {**settings.consumer(), "on_commit": on_commit}
    return _made(Consumer, properties, settings, connection)


def state_consumer(settings: ClientSettings, connection: ConnectionState) -> Consumer:
    """A reader of committed records by position."""
    return _made(Consumer, settings.state_reader(), settings, connection)


def ranking_consumer(settings: ClientSettings, connection: ConnectionState) -> Consumer:
    """A reader of rankings."""
    return _made(Consumer, settings.ranking_reader(), settings, connection)


def transactional_producer(
    settings: ClientSettings, transactional_id: str, connection: ConnectionState
) -> Producer:
    """A producer that has not taken over its transactional id yet."""
    return _made(Producer, settings.producer(transactional_id), settings, connection)


def feeding_producer(
    settings: ClientSettings, connection: ConnectionState, largest_batch: int
) -> Producer:
    """An idempotent producer for input topics."""
    return _made(Producer, settings.feeder(largest_batch), settings, connection)


def admin_client(settings: ClientSettings, connection: ConnectionState) -> AdminClient:
    """A client for questions about topics and offsets."""
    return _made(AdminClient, settings.admin(), settings, connection)


def _made(
    client: Callable[[dict[str, Any]], Client],
    properties: Mapping[str, Any],
    settings: ClientSettings,
    connection: ConnectionState,
) -> Client:
    try:
        return client({**properties, "error_cb": connection.note, "logger": LOGGER})
    except (KafkaException, TypeError, ValueError) as reason:
        said = reason.args[0].str() if isinstance(reason, KafkaException) else str(reason)
        # Without the cause: it would show what was redacted.
        raise InvalidParameter(f"a Kafka property: {settings.redacted(said)}") from None
