"""Producing records into an input topic, each once and in order, at a limited rate."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from stream_fs.errors import TransportError
from stream_fs.kafka.clients import idempotent_producer
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.settings import ClientSettings

_STEP_SECONDS: Final = 0.1
"""Longest wait of one call of the client, and so between two calls of `check`."""


class RateLimit:
    """Limits the average rate, in records per second; None for no limit.

    A producer that falls behind catches up: the rate holds on average, not between two records.
    """

    def __init__(self, rate: float | None, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._began: float | None = None
        self._count = 0

    def wait(self) -> float:
        """Seconds until the next record is due."""
        if self._rate is None:
            return 0.0
        now = self._clock()
        if self._began is None:
            self._began = now
        return max(0.0, self._began + self._count / self._rate - now)

    def record_sent(self) -> None:
        """Count a record."""
        self._count += 1


class RecordProducer:
    """Produces into one topic; `partition` None spreads the records over its partitions.

    A batch of several records has at most `largest_batch` bytes, which the topic has to allow.
    `check` is called repeatedly while records are sent, and may raise to stop that.
    """

    def __init__(
        self,
        settings: ClientSettings,
        topic: str,
        partition: int | None,
        rate_limit: RateLimit,
        check: Callable[[], None],
        largest_batch: int,
    ) -> None:
        self._settings = settings
        self._check = check
        self._topic = topic
        self._partition = -1 if partition is None else partition
        self._rate_limit = rate_limit
        self._connection = ConnectionState()
        self._producer = idempotent_producer(settings, self._connection, largest_batch)
        self._error: KafkaError | None = None
        self.sent = 0
        """Number of records passed to the client."""
        self.delivered = 0
        """Number of records that the broker has acknowledged."""

    def send(self, value: bytes, timestamp: int | None = None) -> None:
        """Send one record when it is due; `timestamp` in milliseconds, None for now.

        Raises a `TransportError` when this or an earlier record could not be delivered.
        """
        while (seconds := self._rate_limit.wait()) > 0:
            self._serve(min(seconds, _STEP_SECONDS))
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value,
                    partition=self._partition,
                    on_delivery=self._on_delivery,
                    timestamp=0 if timestamp is None else timestamp,
                )
            except BufferError:
                self._serve(_STEP_SECONDS)
            except KafkaException as exception:
                doing = f"record {self.sent} of {len(value)} bytes"
                raise self._failure(exception.args[0], doing) from exception
            else:
                break
        self.sent += 1
        self._rate_limit.record_sent()
        self._serve(0)

    def finish(self) -> None:
        """Wait until all records are acknowledged; raises as `send` does."""
        while len(self._producer):
            with translate_errors(self._doing, self._connection):
                self._producer.flush(_STEP_SECONDS)
            self._raise_delivery_error()
        self._raise_delivery_error()

    def close(self) -> None:
        """Drop the records that are not acknowledged yet."""
        self._producer.purge()
        self._producer.flush(0)

    def _serve(self, seconds: float) -> None:
        with translate_errors(self._doing, self._connection):
            self._producer.poll(seconds)
        self._raise_delivery_error()
        self._check()

    def _on_delivery(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.delivered += 1
        elif self._error is None:
            self._error = error

    def _raise_delivery_error(self) -> None:
        if self._error is not None:
            raise self._failure(self._error, f"{self.sent - self.delivered} not delivered")

    def _failure(self, error: KafkaError, what: str) -> TransportError:
        return classify(error, f"{self._doing}, {what}", self._connection)

    @property
    def _doing(self) -> str:
        return f"producing to {self._topic}: {self.delivered} of {self.sent} records delivered"
