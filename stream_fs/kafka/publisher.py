"""The transactional producer of one input partition: its ownership, and its only way out."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Final

from confluent_kafka import KafkaError, KafkaException, Message, Producer

from stream_fs.errors import AbortableError, FencedError, RetriableError, TransportError
from stream_fs.kafka.clients import LOGGER, Progress, transactional_producer, unobserved
from stream_fs.kafka.errors import ConnectionState, classify, translate_errors
from stream_fs.kafka.settings import ClientSettings
from stream_fs.pipeline.ports import OutgoingRecord

_STEP_SECONDS: Final = 0.01
"""How long one call of `acquire` waits."""
_TELL_SECONDS: Final = 10.0
"""Of taking over in vain, at least, before that is told: a broker that coordinates it may have to
be found first."""
_FAREWELL_SECONDS: Final = 2.0
"""How long `close` tries to abort, so that readers need not wait for the transaction's timeout."""


class KafkaPublisher:
    """See `stream_fs.pipeline.ports.Publisher`.

    One producer is one tenure: after a `FencedError`, or when an owner takes over once more, the
    next `acquire` starts another.
    """

    def __init__(
        self,
        settings: ClientSettings,
        transactional_id: str,
        progress: Progress = unobserved,
    ) -> None:
        self._settings = settings
        self._id = transactional_id
        self._progress = progress
        self._producer: Producer | None = None
        self._taken = False
        self._open = False
        self._began = 0.0  # the open transaction
        self._since = 0.0  # it is being taken over
        self._committing = False  # the outcome is open: nothing but `commit` again may follow
        self.connection = ConnectionState()

    def acquire(self) -> bool:
        """Fence the previous owner and end its transaction; False: call again.

        Raises `RetriableError` where that goes on for longer than a call may take; it may be called
        again then, too.
        """
        if self._taken:  # once more: a client can do this only once
            self._discard()
        if self._producer is None:
            self._producer = transactional_producer(self._settings, self._id, self.connection)
            self._since = time.monotonic()
        try:
            with translate_errors(f"taking over {self._id}", self.connection):
                self._producer.poll(0)  # so that the reason of a refused connection is heard
                # A call after a timeout goes on where the last one stopped.
                self._producer.init_transactions(_STEP_SECONDS)
        except RetriableError:
            if time.monotonic() - self._since < max(self._settings.timeout, _TELL_SECONDS):
                return False
            self._since = time.monotonic()  # each step is short: tell of it once in a while only
            raise
        except FencedError:  # another one took over in the same moment: start again
            self._discard()
            return False
        self.connection.clear()
        self._taken = True
        return True

    def begin(self) -> None:
        """Open a transaction; local, the broker hears of it with the first record."""
        with self._acting("beginning a transaction"):
            self._owned().begin_transaction()
        self._open, self._began = True, time.monotonic()

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        """Publish, wait for every acknowledgement, and tell the offsets in the records' order."""
        deliveries = _Deliveries(len(records))
        doing = f"sending {len(records)} records"
        with self._acting(doing):
            for place, record in enumerate(records):
                self._produce(record, deliveries, place)
            self._progress()
            self._owned().flush(self._settings.timeout)
        if deliveries.error is not None:
            # It voids the transaction, although it does not say so itself.
            with self._acting(doing, otherwise=AbortableError):
                raise KafkaException(self._verdict() or deliveries.error)
        # What `flush` returns counts also what else the client wants to tell.
        if left := deliveries.offsets.count(None):
            raise AbortableError(
                f"{doing} as {self._id}: {left} are not acknowledged after "
                f"{self._settings.timeout:g} s; {self.connection.error or 'the broker is slow'}"
            )
        self.connection.clear()
        return [offset for offset in deliveries.offsets if offset is not None]

    def commit(self) -> None:
        """Make the transaction visible; after a `RetriableError` call it again.

        The broker answers when this is decided; readers see it some milliseconds later.
        """
        self._committing = True
        self._progress()
        with self._acting("committing"):
            self._owned().commit_transaction(self._settings.timeout)
        self._open = self._committing = False

    def abort(self) -> None:
        """Make the transaction void, if one is open; after a `RetriableError` call it again."""
        if not self._open:
            return
        if self._committing:
            # The broker may have committed it, so it must not be sent again; nor can the client
            # abort any more. Whoever takes over learns what became of it.
            self._discard()
            text = f"{self._id}: the outcome of the commit is open; take over again"
            raise FencedError(text, outcome_unknown=True)
        self._progress()
        with self._acting("aborting"):
            self._owned().abort_transaction(self._settings.timeout)
        self._open = False

    def close(self) -> None:
        """Let go; an open transaction is aborted now, or by the next owner, or by its timeout."""
        if self._producer is None:
            return
        if self._open:
            self._progress()
            try:
                with self._acting("aborting"):
                    self._producer.abort_transaction(_FAREWELL_SECONDS)
            except TransportError as reason:
                LOGGER.info("left a transaction open: %s", reason)
        self._discard()

    def _owned(self) -> Producer:
        if self._producer is None:
            raise FencedError(f"{self._id} is not owned here: it has to be taken over")
        return self._producer

    def _produce(self, record: OutgoingRecord, deliveries: _Deliveries, place: int) -> None:
        """Hand one record to the client, waiting for room in its queue.

        The queue has room at the latest when a record in it times out, with the transaction.
        """
        self._progress()
        partition = -1 if record.partition is None else record.partition
        while True:
            try:
                self._owned().produce(
                    record.topic,
                    record.value,
                    record.key,
                    partition,
                    on_delivery=deliveries.at(place),
                    headers=list(record.headers),
                )
            except BufferError:
                self._owned().poll(_STEP_SECONDS)
            except KafkaException as exception:
                error = self._verdict() or exception.args[0]
                size = len(record.value or b"") + len(record.key or b"")
                doing = f"sending {size} bytes to {record.topic} as {self._id}"
                raise classify(error, doing, self.connection) from exception
            else:
                return

    @contextmanager
    def _acting(self, doing: str, otherwise: type[TransportError] | None = None) -> Iterator[None]:
        """Translate errors; a fenced producer is discarded.

        A transaction that the broker aborted after its timeout is reported as if another owner
        had fenced the producer.
        """
        try:
            with translate_errors(f"{doing} as {self._id}", self.connection, otherwise):
                try:
                    yield
                except SystemError as exception:
                    if (verdict := self._verdict()) is not None:
                        raise KafkaException(verdict) from exception
                    raise
        except FencedError as error:
            timeout = self._settings.transaction_timeout
            overdue = self._open and time.monotonic() - self._began >= timeout
            self._discard()
            if overdue and not error.outcome_unknown:
                text = f"{error}; the transaction was open for longer than {timeout:g} s"
                raise FencedError(text, outcome_unknown=True) from error
            raise

    def _verdict(self) -> KafkaError | None:
        """What the client has against this transaction or this producer, None for nothing.

        It repeats it to whoever begins a transaction; otherwise, as one is open already, that
        changes nothing. A record that was purged or refused does not tell why, and a fatal error
        that met a callback on its way out may be forgotten.
        """
        try:
            self._owned().begin_transaction()
        except KafkaException as exception:
            error: KafkaError = exception.args[0]
            return None if error.code() == KafkaError._STATE else error
        return None

    def _discard(self) -> None:
        """Drop the producer, which ends it; `Producer.close` would wait for a broker that is gone.

        A purge first, for the client's destructor complains of records in its queue.
        """
        if self._producer is not None:
            self._producer.purge()
        self._producer = None
        self._taken = self._open = self._committing = False


class _Deliveries:
    """What became of the records of one `send`."""

    def __init__(self, count: int) -> None:
        self.offsets: list[int | None] = [None] * count
        self.error: KafkaError | None = None

    def at(self, place: int) -> Callable[[KafkaError | None, Message], None]:
        """The callback for the record at this place."""

        def delivered(error: KafkaError | None, message: Message) -> None:
            if error is None:
                self.offsets[place] = message.offset()
            elif self.error is None:
                self.error = error

        return delivered
