"""Work-arounds for librdkafka and its Python binding, each with the issue that it answers.

Those that need the state of their client are where that state is: `cursor` repeats seeks that are
forgotten (librdkafka #2256), `errors.ConnectionState` keeps the reason of a timeout (#950, #4656),
`errors` and `publisher` treat a commit that the broker knows nothing of as undecided (#3297), and
`topics` waits longer than the client's timeout (#1869).

`librdkafka #N` is an issue of confluentinc/librdkafka, `python #N` one of
confluentinc/confluent-kafka-python. "Measured" marks what was seen with confluent-kafka 2.16.1 and
Apache Kafka 4.3.1, and for which no issue is known.

One is answered by the design: `send_offsets_to_transaction` ignores its timeout and may hang when
the group coordinator leaves the cluster (librdkafka #5511, #5456), so transactions contain records
only, and the offset to continue from is a record of the state topic.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from confluent_kafka import (
    Consumer,
    KafkaError,
    KafkaException,
    Message,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from stream_fs.errors import TransportError
from stream_fs.pipeline.ports import Partition

LOGGER: Final = logging.getLogger("stream_fs.kafka")
"""Receives what librdkafka logs, within the calls that serve a client's events."""

# Consuming

GATHER_SECONDS: Final = 0.005
"""How long `consume` waits for more messages once the first has arrived."""


def consume(
    consumer: Consumer, count: int, timeout: float, gather: float = GATHER_SECONDS
) -> list[Message]:
    """Up to `count` messages, shortly after the first one has arrived.

    `Consumer.consume` may wait until it has all of them (measured; it differs between versions,
    python #2205), and so delay a single record by the whole timeout.
    """
    if timeout <= gather:
        return consumer.consume(count, timeout)
    first = consumer.poll(timeout)
    return [] if first is None else [first, *consumer.consume(count - 1, gather)]


def seek(consumer: Consumer, place: TopicPartition) -> bool:
    """Fetch a partition from an offset on; False where the client refuses to seek.

    It refuses right after an assignment (librdkafka #3959), for a moment, and after a fetch that
    failed because its offset is gone (librdkafka #2961), until the partition is assigned again.

    Resumes first: after a pause the fetching thread sleeps up to a second, and only a seek wakes
    it up (measured). A seek before the resume may be forgotten (librdkafka #3471).
    """
    try:
        consumer.resume([place])
        consumer.seek(place)
    except KafkaException as exception:
        if exception.args[0].code() != KafkaError._STATE:
            raise
        return False
    return True


def assignment_offsets(
    partitions: Sequence[Partition],
    read_ends: Callable[[Sequence[Partition]], Mapping[Partition, int]],
) -> dict[Partition, int]:
    """The offsets at which to assign partitions that are paused at first: their ends.

    A fetch may be sent before the pause. It must not fail, as it would at offset 0 when retention
    has deleted that: the client would then refuse every seek (librdkafka #2961).

    The offsets are always numbers. For `OFFSET_END` the client would look up the end itself, and
    return to it with every late answer, also after a seek (librdkafka #2256): it would skip
    records. So partitions whose ends cannot be read are assigned at 0.
    """
    ends = dict.fromkeys(partitions, 0)
    for topic in {partition.topic for partition in partitions}:
        try:
            ends.update(read_ends([place for place in partitions if place.topic == topic]))
        except TransportError as reason:
            LOGGER.info("%s is assigned at offset 0, its ends are unknown: %s", topic, reason)
    return ends


def assign_again(
    consumer: Consumer,
    delivered: Sequence[TopicPartition],
    paused: Sequence[TopicPartition],
    *,
    incremental: bool,
) -> bool:
    """Assign partitions in which the client refuses to seek (librdkafka #2961), at new offsets.

    Without `incremental`, they are all partitions of the consumer. False during a rebalance.
    """
    places = [*delivered, *paused]
    try:
        if incremental:
            consumer.incremental_unassign(places)
            consumer.incremental_assign(places)
        else:
            consumer.assign(places)
        consumer.pause(list(paused))
        consumer.resume(list(delivered))
    except KafkaException as exception:
        LOGGER.info("partitions cannot be assigned again: %s", exception.args[0].str())
        return False
    return True


_REBALANCE_SECONDS: Final = 5.0
"""How long `finish_rebalance` waits, in steps of `_REBALANCE_STEP_SECONDS`."""
_REBALANCE_STEP_SECONDS: Final = 0.05
_REBALANCE_STEP_MESSAGES: Final = 1000
"""Messages that each step discards, at most."""


def finish_rebalance(
    consumer: Consumer,
    *,
    static: bool,
    callbacks: Callable[[], int],
    unreachable: Callable[[], bool],
    heartbeat: Callable[[], None],
) -> None:
    """Answer all outstanding rebalance callbacks and give up all partitions, before a close.

    A client that is closed while a callback is outstanding starts another rebalance on top of it.
    That may abort the process (librdkafka #4792), and the partitions of the outstanding one are
    never revoked. `unsubscribe` waits until the rebalance has ended; but it would remove a static
    member from the group, which keeps its place when it is closed.

    Without a broker no rebalance ends, and one that waits for a slow member may take minutes: then
    `close` gives up what is still assigned. `callbacks` returns how many were called so far.
    """
    if not static:
        consumer.unsubscribe()
    deadline = time.monotonic() + _REBALANCE_SECONDS
    while True:
        before = callbacks()
        heartbeat()
        consumer.consume(_REBALANCE_STEP_MESSAGES, _REBALANCE_STEP_SECONDS)
        assigned = not static and bool(consumer.assignment())
        finished = not assigned and callbacks() == before
        if finished or unreachable() or time.monotonic() > deadline:
            return


# Producing


def transaction_error(producer: Producer) -> KafkaError | None:
    """The error that has failed the open transaction or the producer; None where there is none.

    A record that was purged from the queue says only that (librdkafka #3196), and a fatal error
    that is raised while a callback runs may be lost (python #865). The client repeats the cause to
    `begin_transaction`, which otherwise changes nothing, as a transaction is open.
    """
    try:
        producer.begin_transaction()
    except KafkaException as exception:
        error: KafkaError = exception.args[0]
        return None if error.code() == KafkaError._STATE else error
    return None


def discard(producer: Producer) -> None:
    """Drop all queued records, so that the producer can be deleted without waiting.

    `Producer.close` flushes first (python #2066) and so waits for a broker that is gone; the
    destructor alone logs a warning about records in the queue (measured).
    """
    producer.purge()


# Offsets


def refresh_leaders(admin: AdminClient, topic: str, timeout: float) -> int:
    """Let the client look up the leaders of a topic's partitions; returns their number.

    Requests for offsets go to the leader that the client remembers. Where that broker is gone, they
    wait far beyond their timeout, some of them for ever (librdkafka #2588, #1869, #4878).
    """
    found = admin.list_topics(topic, timeout).topics[topic]
    if found.error is not None:
        raise KafkaException(found.error)
    return len(found.partitions)


# Errors and log lines


def underlying_error(exception: BaseException | None) -> KafkaError | None:
    """The client's error within an exception or its causes.

    An error that is raised while a callback runs reaches Python as a SystemError, which may name it
    as its cause (python #865).
    """
    while exception is not None:
        if isinstance(exception, KafkaException) and isinstance(exception.args[0], KafkaError):
            return exception.args[0]
        exception = exception.__cause__ or exception.__context__
    return None


def cause_code(error: KafkaError, known: Iterable[int]) -> int:
    """The error's code; for `_FATAL`, the one of `known` that its text names.

    A fatal error of a consumer has the code `_FATAL`, whatever caused it (python #869).
    """
    code: int = error.code()
    if code != KafkaError._FATAL:
        return code
    return next((cause for cause in known if KafkaError(cause).str() in error.str()), code)


class ConnectionAttemptFilter(logging.Filter):
    """Drops log lines about failed connection attempts, except at level DEBUG.

    During an outage every client writes one per attempt (python #1328). `ConnectionState` has the
    reason, and the consumer logs the outage once.
    """

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether to log the record."""
        attempt = isinstance(record.args, tuple) and record.args[:1] == ("FAIL",)
        return not attempt or logging.getLogger(record.name).isEnabledFor(logging.DEBUG)


LOGGER.addFilter(ConnectionAttemptFilter())


# Properties

_UNKNOWN_LAST: Final = "stream-fs.end"
"""Not a property: a client that is refused for it alone accepts everything before it."""
_NAME: Final = re.compile(r"[\w.-]+", re.ASCII)
_NOT_A_PROPERTY: Final = "is not a property of librdkafka"
_UNKNOWN_PROPERTY: Final = re.compile(r"^No such configuration property")
# The name is given before the message; the library may use another name of the same property.
_NAME_IN_MESSAGE: Final = re.compile(
    r' (for|of) configuration property "[^"]*"|^Configuration property "\S*" '
)


def property_error(name: str, value: str | float) -> str | None:
    """Why librdkafka refuses a property, in its own words; None where it accepts it.

    The library has no call for this. A client sets its properties one after the other before it is
    created, so one that is sure to fail at the last property checks the others: nothing connects,
    and no file is opened that may exist only on another machine.

    The library is not asked about names that are not ASCII, and not given text that is not UTF-8:
    a name that cannot be encoded ends the process (measured).
    """
    if not _NAME.fullmatch(name):
        return _NOT_A_PROPERTY
    if isinstance(value, str) and not _is_encodable(value):
        return "is not text that can be passed to librdkafka"
    try:
        Producer({name: value, _UNKNOWN_LAST: ""})
    except KafkaException as reason:
        message = str(reason.args[0].str()).strip()
        if _UNKNOWN_LAST in message:
            return None
        if _UNKNOWN_PROPERTY.match(message):
            return _NOT_A_PROPERTY
        return _NAME_IN_MESSAGE.sub("", message)
    except (TypeError, ValueError, AttributeError) as reason:  # raised by the Python binding
        return f"cannot be set here: {reason}"
    raise AssertionError(f"{_UNKNOWN_LAST} was accepted as a property")


def _is_encodable(value: str) -> bool:
    """Whether text is UTF-8 without a zero byte, at which the library would stop reading."""
    return "\0" not in value and not any("\ud800" <= letter <= "\udfff" for letter in value)
