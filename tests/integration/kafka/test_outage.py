"""The broker is stopped or killed, and comes back."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from stream_fs.broker import Broker
from stream_fs.errors import AbortableError, FencedError, RetriableError
from stream_fs.kafka import KafkaTransport, Rebalance
from stream_fs.pipeline.ports import OutgoingRecord, Partition, Publisher
from tests.contracts.backend import Published
from tests.integration.kafka.backend import KafkaBackend
from tests.support.topics import Topics
from tests.support.waiting import Member, everything, owner, published, until


@pytest.fixture
def stoppable_broker(own_broker: Broker) -> Iterator[Broker]:
    """A broker that a test may stop; it is started again afterwards."""
    yield own_broker
    own_broker.start()


# In this order the broker is back before the topics are removed.
@pytest.fixture
def short_timeout(own_backend: KafkaBackend, stoppable_broker: Broker) -> KafkaTransport:
    """A transport with a short timeout.

    Long enough for what is done before the broker is stopped.
    """
    assert stoppable_broker.bootstrap == own_backend.topics.bootstrap
    return KafkaTransport(
        replace(own_backend.settings(), timeout=6.0), "stream", own_backend.state_topic
    )


def insist(call: Callable[[], object]) -> None:
    """Call until it succeeds."""

    def done() -> bool:
        try:
            call()
        except RetriableError:
            return False
        return True

    until(done, f"{call} succeeds")


def publish(publisher: Publisher, records: list[OutgoingRecord]) -> None:
    """Send and commit, with retries while the broker starts."""

    def published_once() -> bool:
        publisher.begin()
        try:
            publisher.send(records)
        except AbortableError:
            insist(publisher.abort)
            return False
        insist(publisher.commit)
        return True

    until(published_once, "the records are published")


@pytest.mark.parametrize("rebalance", Rebalance)
def test_polling_goes_on_when_the_broker_is_back(
    own_topics: Topics,
    stoppable_broker: Broker,
    rebalance: Rebalance,
    caplog: pytest.LogCaptureFixture,
) -> None:
    backend = KafkaBackend(own_topics, rebalance)
    partition = Partition(backend.topic(), 0)
    backend.produce(partition, b"before")
    member = Member()
    source = backend.transport().input([partition.topic], member)
    member.holds(source, {partition})
    source.resume(partition, 0)
    member.receives(source, partition, 1)
    assert source.connection.error is None
    stoppable_broker.stop()
    member.polls(source, lambda: source.connection.error is not None, "the outage")
    assert "check kafka.bootstrap" in str(source.connection.error)
    caplog.clear()
    for _ in range(3):
        member.poll(source)
    stoppable_broker.start()
    # The topic is idle: no message shows the end of the outage.
    member.polls(source, lambda: source.connection.error is None, "the end of the outage")
    assert [record.message for record in caplog.records if "answers" in record.message] == [
        "a broker answers again"
    ]
    backend.produce(partition, b"after")
    if partition not in member.assignment:  # the restart took longer than the session
        member.holds(source, {partition})
        source.resume(partition, 1)
    member.receives(source, partition, 2)
    assert member.offsets(partition) == [0, 1]
    source.close()


def test_a_commit_of_open_outcome_may_be_called_again(
    own_backend: KafkaBackend, short_timeout: KafkaTransport, stoppable_broker: Broker
) -> None:
    topic = own_backend.topic()
    publisher = owner(short_timeout.publisher(Partition(topic, 0)))
    publisher.begin()
    publisher.send([OutgoingRecord(topic, b"key", b"value", partition=0)])
    stoppable_broker.kill()
    with pytest.raises(RetriableError):
        publisher.commit()
    with pytest.raises(RetriableError, match=r"check kafka\.bootstrap"):
        publisher.commit()
    stoppable_broker.start()

    insist(publisher.commit)
    assert published(own_backend, topic, 1) == [Published(b"key", b"value")]
    publisher.close()


def test_a_commit_of_open_outcome_that_is_given_up_is_followed_by_another_acquire(
    own_backend: KafkaBackend, short_timeout: KafkaTransport, stoppable_broker: Broker
) -> None:
    topic = own_backend.topic()
    publisher = owner(short_timeout.publisher(Partition(topic, 0)))
    publisher.begin()
    publisher.send([OutgoingRecord(topic, b"key", b"open", partition=0)])
    stoppable_broker.kill()
    with pytest.raises(RetriableError):
        publisher.commit()
    with pytest.raises(FencedError, match="outcome of the commit is open"):
        publisher.abort()
    stoppable_broker.start()
    publish(owner(publisher), [OutgoingRecord(topic, b"key", b"next", partition=0)])
    # The commit never reached the broker here; the point is that it is decided now.
    assert published(own_backend, topic, 1) == [Published(b"key", b"next")]
    publisher.close()


def test_records_that_cannot_be_sent_are_sent_again_in_a_new_transaction(
    own_backend: KafkaBackend, short_timeout: KafkaTransport, stoppable_broker: Broker
) -> None:
    topic = own_backend.topic()
    records = [OutgoingRecord(topic, b"key", b"value", partition=0)]
    publisher = owner(short_timeout.publisher(Partition(topic, 0)))
    publisher.begin()
    stoppable_broker.kill()
    with pytest.raises(AbortableError, match="not acknowledged"):
        publisher.send(records)
    stoppable_broker.start()

    insist(publisher.abort)
    publish(publisher, records)
    assert published(own_backend, topic, 1) == [Published(b"key", b"value")]
    publisher.close()


def test_closing_does_not_wait_for_a_stopped_broker(
    own_backend: KafkaBackend, short_timeout: KafkaTransport, stoppable_broker: Broker
) -> None:
    partition = Partition(own_backend.topic(), 0)
    publisher = owner(short_timeout.publisher(partition))
    publisher.begin()
    publisher.send([OutgoingRecord(partition.topic, b"key", b"open", partition=0)])
    member = Member()
    source = short_timeout.input([partition.topic], member)
    member.holds(source, {partition})
    stoppable_broker.kill()
    source.close()
    assert member.assignment == set()
    publisher.close()
    stoppable_broker.start()
    owner(short_timeout.publisher(partition)).close()
    assert own_backend.published(partition.topic) == []


@pytest.mark.parametrize("rebalance", [Rebalance.EAGER, Rebalance.COOPERATIVE])
def test_closing_during_a_rebalance_does_not_wait_for_a_stopped_broker(
    own_topics: Topics, stoppable_broker: Broker, rebalance: Rebalance
) -> None:
    backend = KafkaBackend(own_topics, rebalance)
    partition = Partition(backend.topic(), 0)
    member = Member()
    source = backend.transport().input([partition.topic], member)
    backend.assigned(1)  # without a poll: the client's callback is outstanding
    stoppable_broker.kill()
    source.close()
    assert member.assignment == set()


def test_acquiring_and_restoring_wait_for_the_broker(
    own_backend: KafkaBackend,
    short_timeout: KafkaTransport,
    stoppable_broker: Broker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    partition = Partition(own_backend.topic(), 0)
    state = own_backend.state_topic(partition.topic)
    first = owner(short_timeout.publisher(partition))
    publish(first, [OutgoingRecord(state, b"key", b"value", partition=0)])
    first.close()
    log = short_timeout.state_log(partition)
    # A broker that is killed before it writes the marker may never write it (KIP-664).
    until(lambda: log.end() == 2, "the record and the marker of its transaction")
    stoppable_broker.kill()
    publisher = short_timeout.publisher(partition)
    until(lambda: publisher.acquire() or publisher.connection.error is not None, "it is noticed")
    assert "check kafka.bootstrap" in str(publisher.connection.error)
    with pytest.raises(RetriableError, match=f"{state}/0"):
        log.end()
    stoppable_broker.start()
    owner(publisher)
    assert publisher.connection.error is None

    insist(log.end)
    scan = log.scan(0, log.end())
    found = [next(scan)]
    stoppable_broker.kill()
    stoppable_broker.start()
    found += list(scan)
    assert [record.value for record in found if record is not None] == [b"value"]
    insist(lambda: everything(log))
    # Failed connection attempts are not logged.
    assert not [record for record in caplog.records if "FAIL" in record.getMessage()]
    log.close()
    publisher.close()
