"""The broker goes away and comes back."""

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
from tests.contracts.waiting import Member, everything, owner, published, until
from tests.integration.kafka.backend import KafkaBackend
from tests.integration.topics import Topics


@pytest.fixture
def brittle(own_broker: Broker) -> Iterator[Broker]:
    """A broker that may be taken away: afterwards it is back."""
    yield own_broker
    own_broker.start()


# In this order the broker is back before the topics are removed.
@pytest.fixture
def impatient(own_backend: KafkaBackend, brittle: Broker) -> KafkaTransport:
    """A transport on the brittle broker whose calls give up soon.

    Not too soon: what is done before the broker is taken away has no more time either.
    """
    assert brittle.bootstrap == own_backend.topics.bootstrap
    return KafkaTransport(
        replace(own_backend.settings(), timeout=6.0), "stream", own_backend.state_topic
    )


def insist(call: Callable[[], object]) -> None:
    """Call until nothing stands against it any more."""

    def done() -> bool:
        try:
            call()
        except RetriableError:
            return False
        return True

    until(done, f"{call} does not get through")


def publish(publisher: Publisher, records: list[OutgoingRecord]) -> None:
    """Send and commit, again and again while the broker is slow to come back."""

    def taken() -> bool:
        publisher.begin()
        try:
            publisher.send(records)
        except AbortableError:
            insist(publisher.abort)
            return False
        insist(publisher.commit)
        return True

    until(taken, "the records are not taken")


@pytest.mark.parametrize("rebalance", Rebalance)
def test_polling_goes_on_when_the_broker_is_back(
    own_topics: Topics,
    brittle: Broker,
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
    brittle.stop()
    member.polls(source, lambda: source.connection.error is not None, "the outage")
    assert "check kafka.bootstrap" in str(source.connection.error)
    caplog.clear()
    for _ in range(3):
        member.poll(source)
    brittle.start()
    # The topic is idle, and tells nothing.
    member.polls(source, lambda: source.connection.error is None, "the end of the outage")
    assert [record.message for record in caplog.records if "answers" in record.message] == [
        "a broker answers again"
    ]
    backend.produce(partition, b"after")
    if partition not in member.mine:  # the restart took longer than the session
        member.holds(source, {partition})
        source.resume(partition, 1)
    member.receives(source, partition, 2)
    assert member.offsets(partition) == [0, 1]
    source.close()


def test_a_commit_of_open_outcome_may_be_called_again(
    own_backend: KafkaBackend, impatient: KafkaTransport, brittle: Broker
) -> None:
    topic = own_backend.topic()
    publisher = owner(impatient.publisher(Partition(topic, 0)))
    publisher.begin()
    publisher.send([OutgoingRecord(topic, b"key", b"value", partition=0)])
    brittle.kill()
    with pytest.raises(RetriableError):
        publisher.commit()
    with pytest.raises(RetriableError, match=r"check kafka\.bootstrap"):
        publisher.commit()
    brittle.start()

    insist(publisher.commit)
    assert published(own_backend, topic, 1) == [Published(b"key", b"value")]
    publisher.close()


def test_who_gives_up_a_commit_of_open_outcome_takes_over_again(
    own_backend: KafkaBackend, impatient: KafkaTransport, brittle: Broker
) -> None:
    topic = own_backend.topic()
    publisher = owner(impatient.publisher(Partition(topic, 0)))
    publisher.begin()
    publisher.send([OutgoingRecord(topic, b"key", b"open", partition=0)])
    brittle.kill()
    with pytest.raises(RetriableError):
        publisher.commit()
    with pytest.raises(FencedError, match="outcome of the commit is open"):
        publisher.abort()
    brittle.start()
    publish(owner(publisher), [OutgoingRecord(topic, b"key", b"next", partition=0)])
    # The commit never reached the broker here; the point is that it is decided now.
    assert published(own_backend, topic, 1) == [Published(b"key", b"next")]
    publisher.close()


def test_what_cannot_be_sent_is_sent_again_in_a_new_transaction(
    own_backend: KafkaBackend, impatient: KafkaTransport, brittle: Broker
) -> None:
    topic = own_backend.topic()
    records = [OutgoingRecord(topic, b"key", b"value", partition=0)]
    publisher = owner(impatient.publisher(Partition(topic, 0)))
    publisher.begin()
    brittle.kill()
    with pytest.raises(AbortableError, match="not acknowledged"):
        publisher.send(records)
    brittle.start()

    insist(publisher.abort)
    publish(publisher, records)
    assert published(own_backend, topic, 1) == [Published(b"key", b"value")]
    publisher.close()


def test_closing_does_not_wait_for_a_broker_that_is_gone(
    own_backend: KafkaBackend, impatient: KafkaTransport, brittle: Broker
) -> None:
    partition = Partition(own_backend.topic(), 0)
    publisher = owner(impatient.publisher(partition))
    publisher.begin()
    publisher.send([OutgoingRecord(partition.topic, b"key", b"open", partition=0)])
    member = Member()
    source = impatient.input([partition.topic], member)
    member.holds(source, {partition})
    brittle.kill()
    source.close()
    assert member.mine == set()
    publisher.close()
    brittle.start()
    owner(impatient.publisher(partition)).close()
    assert own_backend.published(partition.topic) == []


@pytest.mark.parametrize("rebalance", [Rebalance.EAGER, Rebalance.COOPERATIVE])
def test_closing_amid_a_rebalance_does_not_wait_for_a_broker_that_is_gone(
    own_topics: Topics, brittle: Broker, rebalance: Rebalance
) -> None:
    backend = KafkaBackend(own_topics, rebalance)
    partition = Partition(backend.topic(), 0)
    member = Member()
    source = backend.transport().input([partition.topic], member)
    backend.assigned(1)  # without a poll: the client's callback is outstanding
    brittle.kill()
    source.close()
    assert member.mine == set()


def test_taking_over_and_restoring_wait_for_the_broker(
    own_backend: KafkaBackend,
    impatient: KafkaTransport,
    brittle: Broker,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO)
    partition = Partition(own_backend.topic(), 0)
    state = own_backend.state_topic(partition.topic)
    first = owner(impatient.publisher(partition))
    publish(first, [OutgoingRecord(state, b"key", b"value", partition=0)])
    first.close()
    log = impatient.state_log(partition)
    # A broker that is killed before it writes the marker may never write it (KIP-664).
    until(lambda: log.end() == 2, "the record and the marker of its transaction")
    brittle.kill()
    publisher = impatient.publisher(partition)
    until(lambda: publisher.acquire() or publisher.connection.error is not None, "it is noticed")
    assert "check kafka.bootstrap" in str(publisher.connection.error)
    with pytest.raises(RetriableError, match=f"{state}/0"):
        log.end()
    brittle.start()
    owner(publisher)
    assert publisher.connection.error is None

    insist(log.end)
    scan = log.scan(0, log.end())
    found = [next(scan)]
    brittle.kill()
    brittle.start()
    found += list(scan)
    assert [record.value for record in found if record is not None] == [b"value"]
    insist(lambda: everything(log))
    # Failed attempts to connect do not fill the log.
    assert not [record for record in caplog.records if "FAIL" in record.getMessage()]
    log.close()
    publisher.close()
