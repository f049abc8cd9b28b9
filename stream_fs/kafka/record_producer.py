"""Producing records into an input topic, each once and in their order, as fast as asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message

from stream_fs.errors import TransportError
from stream_fs.kafka.clients import feeding_producer
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.settings import ClientSettings

_STEP_SECONDS: Final = 0.1
"""How long one call waits for the client, and so until `check` is asked again."""


class RateLimit:
    """When the next record is due, at so many in a second on average.

    Who falls behind catches up: the rate holds over the whole, not between two records.
    """

    def __init__(self, rate: float | None, clock: Callable[[], float]) -> None:
        self._rate = rate
        self._clock = clock
        self._began: float | None = None
        self._count = 0

    def wait(self) -> float:
        """Seconds until the next record is due, 0 if it is; call `went` when it went."""
        if self._rate is None:
            return 0.0
        now = self._clock()
        if self._began is None:
            self._began = now
        return max(0.0, self._began + self._count / self._rate - now)

    def went(self) -> None:
        """Another record is on its way."""
        self._count += 1


class RecordProducer:
    """Feeds one topic. `partition` None spreads the records over its partitions.

    A batch of several records has at most `largest_batch` bytes, which the topic has to allow.
    `check` is called again and again while records are sent; what it raises ends that.
    """

    def __init__(
        self,
        settings: ClientSettings,
        topic: str,
        partition: int | None,
        pace: RateLimit,
        check: Callable[[], None],
        largest_batch: int,
    ) -> None:
        self._settings = settings
        self._check = check
        self._topic = topic
        self._partition = -1 if partition is None else partition
        self._pace = pace
        self._connection = ConnectionState()
        self._producer = feeding_producer(settings, self._connection, largest_batch)
        self._error: KafkaError | None = None
        self.sent = 0
        """Records handed to the client."""
        self.delivered = 0
        """Records that the broker has acknowledged."""

    def send(self, value: bytes, timestamp: int | None = None) -> None:
        """Hand over one record when it is due; `timestamp` in milliseconds, None for now.

        Raises an error below `TransportError` when a record could not be delivered, be it an
        earlier one.
        """
        while (seconds := self._pace.wait()) > 0:
            self._serve(min(seconds, _STEP_SECONDS))
        while True:
            try:
                self._producer.produce(
                    self._topic,
                    value,
                    partition=self._partition,
                    on_delivery=self._told,
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
        self._pace.went()
        self._serve(0)

    def finish(self) -> None:
        """Wait until everything is acknowledged. Raises as `send` does."""
        while len(self._producer):
            with translate_errors(self._doing, self._connection):
                self._producer.flush(_STEP_SECONDS)
            self._judge()
        self._judge()

    def close(self) -> None:
        """Let go; what is not acknowledged yet is given up."""
        self._producer.purge()
        self._producer.flush(0)

    def _serve(self, seconds: float) -> None:
        with translate_errors(self._doing, self._connection):
            self._producer.poll(seconds)
        self._judge()
        self._check()

    def _told(self, error: KafkaError | None, _: Message) -> None:
        if error is None:
            self.delivered += 1
        elif self._error is None:
            self._error = error

    def _judge(self) -> None:
        if self._error is not None:
            raise self._failure(self._error, f"{self.sent - self.delivered} not delivered")

    def _failure(self, error: KafkaError, what: str) -> TransportError:
        return classify(error, f"{self._doing}, {what}", self._connection)

    @property
    def _doing(self) -> str:
        return f"producing to {self._topic}: {self.delivered} of {self.sent} records delivered"
