"""The transactional producer of one owner: of an input partition, or of the stream's merge.

The producer that acquired the transactional id last is the owner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from stream_fs.errors import AbortableError, FencedError, RetriableError, TransportError
from stream_fs.kafka import librdkafka
from stream_fs.kafka.clients import Heartbeat, no_heartbeat, transactional_producer
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.librdkafka import LOGGER
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import OutgoingRecord

_STEP_SECONDS: Final = 0.01
"""Longest wait of one call of `acquire`."""
_REPORT_SECONDS: Final = 10.0
"""Shortest time of failed attempts to acquire before they are reported: the coordinator may have to
be elected first."""
_CLOSE_SECONDS: Final = 2.0
"""Timeout of the abort in `close`, which spares readers the transaction's timeout."""


class KafkaPublisher:
    """See `stream_fs.pipeline.ports.Publisher`.

    A producer can acquire its transactional id only once. So after a `FencedError`, or when the
    owner acquires it again, the next `acquire` creates another producer.
    """

    def __init__(
        self,
        settings: ClientSettings,
        transactional_id: str,
        heartbeat: Heartbeat = no_heartbeat,
    ) -> None:
        self._settings = settings
        self._id = transactional_id
        self._heartbeat = heartbeat
        self._producer: Producer | None = None
        self._acquired = False
        self._attempted_since = 0.0
        self._open = False
        self._opened_at = 0.0
        self._committing = False  # the outcome is open: only another `commit` may follow
        self.connection = ConnectionState()

    def acquire(self) -> bool:
        """Fence the previous owner and end its transaction; False means that it is not done yet.

        Raises `RetriableError` from time to time where that takes long, and may be called again
        then, too.
        """
        if self._acquired:
            self._discard()
        if self._producer is None:
            self._producer = transactional_producer(self._settings, self._id, self.connection)
            self._attempted_since = time.monotonic()
        try:
            with translate_errors(f"acquiring {self._id}", self.connection):
                self._producer.poll(0)  # serves `error_cb`, which has the reason of a failure
                # After a timeout, the next call continues where the last one stopped.
                self._producer.init_transactions(_STEP_SECONDS)
        except RetriableError:
            limit = max(self._settings.timeout, _REPORT_SECONDS)
            if time.monotonic() - self._attempted_since < limit:
                return False
            self._attempted_since = time.monotonic()
            raise
        except FencedError:  # another owner has acquired it at the same time: start again
            self._discard()
            return False
        self.connection.clear()
        self._acquired = True
        return True

    def begin(self) -> None:
        """Open a transaction; a local call, the broker learns of it with the first record."""
        with self._translate("beginning a transaction"):
            self._owned().begin_transaction()
        self._open, self._opened_at = True, time.monotonic()

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        """Publish, await every acknowledgement, and return the offsets in the records' order."""
        deliveries = _Deliveries(len(records))
        doing = f"sending {len(records)} records"
        with self._translate(doing):
            for number, record in enumerate(records):
                self._produce(record, deliveries.callback(number))
            self._heartbeat()
            self._owned().flush(self._settings.timeout)
        if deliveries.error is not None:
            # It voids the transaction, although it is not flagged as abortable.
            with self._translate(doing, otherwise=AbortableError):
                raise KafkaException(
                    librdkafka.transaction_error(self._owned()) or deliveries.error
                )
        # Not the result of `flush`, which counts other events of the client, too.
        if missing := deliveries.offsets.count(None):
            raise AbortableError(
                f"{doing} as {self._id}: {missing} are not acknowledged after "
                f"{self._settings.timeout:g} s; {self.connection.error or 'the broker is slow'}"
            )
        self.connection.clear()
        return [offset for offset in deliveries.offsets if offset is not None]

    def commit(self) -> None:
        """Make the transaction visible; after a `RetriableError` call it again.

        Returns when the broker has decided; readers see the records some milliseconds later.
        """
        self._committing = True
        self._heartbeat()
        with self._translate("committing"):
            self._owned().commit_transaction(self._settings.timeout)
        self._open = self._committing = False

    def abort(self) -> None:
        """Void the transaction, if one is open; after a `RetriableError` call it again."""
        if not self._open:
            return
        if self._committing:
            # The broker may have committed it, so it must not be sent again, and the client cannot
            # abort it. The next owner, which restores, finds out.
            self._discard()
            text = f"{self._id}: the outcome of the commit is open; acquire it again"
            raise FencedError(text, outcome_unknown=True)
        self._heartbeat()
        with self._translate("aborting"):
            self._owned().abort_transaction(self._settings.timeout)
        self._open = False

    def close(self) -> None:
        """Release the producer; an open transaction is aborted now, or later by the broker."""
        if self._producer is None:
            return
        if self._open:
            self._heartbeat()
            try:
                with self._translate("aborting"):
                    self._producer.abort_transaction(_CLOSE_SECONDS)
            except TransportError as reason:
                LOGGER.info("a transaction is left open: %s", reason)
        self._discard()

    def _owned(self) -> Producer:
        if self._producer is None:
            raise FencedError(f"{self._id} is not owned by this producer: acquire it first")
        return self._producer

    def _produce(
        self, record: OutgoingRecord, on_delivery: Callable[[KafkaError | None, Message], None]
    ) -> None:
        """Pass one record to the client, waiting for room in its queue.

        There is room at the latest when a queued record times out, with the transaction.
        """
        self._heartbeat()
        partition = -1 if record.partition is None else record.partition
        while True:
            try:
                self._owned().produce(
                    record.topic,
                    record.value,
                    record.key,
                    partition,
                    on_delivery=on_delivery,
                    headers=list(record.headers),
                )
            except BufferError:
                self._owned().poll(_STEP_SECONDS)
            except KafkaException as exception:
                error = librdkafka.transaction_error(self._owned()) or exception.args[0]
                size = len(record.value or b"") + len(record.key or b"")
                doing = f"sending {size} bytes to {record.topic} as {self._id}"
                raise classify(error, doing, self.connection) from exception
            else:
                return

    @contextmanager
    def _translate(
        self, doing: str, otherwise: type[TransportError] | None = None
    ) -> Iterator[None]:
        """Translate errors, and discard a fenced producer.

        When the broker has aborted a transaction after its timeout, it reports a fencing, as if
        there were another owner (KIP-588).
        """
        try:
            with translate_errors(f"{doing} as {self._id}", self.connection, otherwise):
                try:
                    yield
                except SystemError as exception:
                    error = librdkafka.transaction_error(self._owned())
                    if error is not None:
                        raise KafkaException(error) from exception
                    raise
        except FencedError as error:
            timeout = self._settings.transaction_timeout
            overdue = self._open and time.monotonic() - self._opened_at >= timeout
            self._discard()
            if overdue and not error.outcome_unknown:
                text = f"{error}; the transaction was open for longer than {timeout:g} s"
                raise FencedError(text, outcome_unknown=True) from error
            raise

    def _discard(self) -> None:
        if self._producer is not None:
            librdkafka.discard(self._producer)
        self._producer = None
        self._acquired = self._open = self._committing = False


class _Deliveries:
    """The delivery reports of one `send`."""

    def __init__(self, count: int) -> None:
        self.offsets: list[int | None] = [None] * count
        self.error: KafkaError | None = None

    def callback(self, number: int) -> Callable[[KafkaError | None, Message], None]:
        """The callback for the record with this number."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.offsets[number] = message.offset()
            elif self.error is None:
                self.error = error

        return delivered
