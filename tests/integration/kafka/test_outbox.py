"""The outbox beyond its contract: sizes, places that are not there, and time."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stream_fs.errors import AbortableError, FatalError, FencedError
from stream_fs.kafka.outbox import KafkaOutbox
from stream_fs.pipeline.ports import Outgoing, Partition
from tests.contracts.backend import Published
from tests.contracts.waiting import owner, published, until
from tests.integration.kafka.backend import KafkaBackend


def test_a_record_larger_than_the_client_takes(backend: KafkaBackend) -> None:
    topic = backend.topic()
    settings = replace(backend.settings(), largest_message=100_000)
    outbox = owner(KafkaOutbox(settings, backend.topics.unique("id")))
    outbox.begin()
    with pytest.raises(FatalError, match=rf"200003 bytes to {topic}.*max\.message\.bytes"):
        outbox.send([Outgoing(topic, b"key", bytes(200_000))])
    outbox.abort()
    outbox.close()


def test_a_record_larger_than_the_topic_takes(backend: KafkaBackend) -> None:
    topic = backend.topics.create(config={"max.message.bytes": "10000"})
    outbox = owner(backend.transport().outbox(Partition(topic, 0)))
    outbox.begin()
    with pytest.raises(FatalError, match=r"max\.message\.bytes of the topic"):
        outbox.send([Outgoing(topic, b"key", bytes(size), partition=0) for size in (1, 20_000, 2)])
    outbox.close()
    outbox = owner(backend.transport().outbox(Partition(topic, 0)))
    outbox.begin()
    outbox.send([Outgoing(topic, b"key", b"small", partition=0)])
    outbox.commit()
    assert published(backend, topic, 1) == [Published(b"key", b"small")]
    outbox.close()


def test_a_partition_that_is_not_there(backend: KafkaBackend) -> None:
    topic = backend.topic()
    outbox = owner(backend.transport().outbox(Partition(topic, 0)))
    outbox.begin()
    outbox.send([Outgoing(topic, b"key", b"value", partition=0)])  # now the client knows the topic
    with pytest.raises(FatalError, match="create the topic"):
        outbox.send([Outgoing(topic, b"key", b"value", partition=7)])
    outbox.abort()
    outbox.close()


def test_more_records_than_the_client_queues(backend: KafkaBackend) -> None:
    topic = backend.topic()
    settings = backend.settings(properties={"queue.buffering.max.messages": 10})
    outbox = owner(KafkaOutbox(settings, backend.topics.unique("id")))
    outbox.begin()
    offsets = outbox.send([Outgoing(topic, None, b"%d" % n, partition=0) for n in range(100)])
    outbox.commit()
    assert offsets == list(range(100))
    outbox.close()


def test_who_is_fenced_while_sending(backend: KafkaBackend) -> None:
    topic = backend.topic()
    name = backend.topics.unique("id")
    settings = backend.settings(properties={"queue.buffering.max.messages": 10})
    old = owner(KafkaOutbox(settings, name))
    old.begin()
    old.send([Outgoing(topic, None, b"old", partition=0)])
    new = owner(KafkaOutbox(settings, name))
    with pytest.raises(FencedError):
        old.send([Outgoing(topic, None, b"old", partition=0)] * 1000)
    with pytest.raises(FencedError, match="has to be taken over"):
        old.begin()
    assert backend.published(topic) == []
    old.close()
    new.close()


def test_records_that_are_not_acknowledged_in_time_void_the_transaction(
    backend: KafkaBackend,
) -> None:
    topic = backend.topic()
    settings = replace(backend.settings(), patience=0.000_001)
    outbox = owner(KafkaOutbox(settings, backend.topics.unique("id")))
    outbox.begin()
    with pytest.raises(AbortableError, match="not acknowledged"):
        outbox.send([Outgoing(topic, None, bytes(900_000), partition=0) for _ in range(20)])
    outbox.close()
    assert backend.published(topic) == []


def test_a_transaction_that_takes_too_long_is_fenced(own_backend: KafkaBackend) -> None:
    topic = own_backend.topic()
    settings = replace(own_backend.settings(), transaction_timeout=5.0)
    outbox = KafkaOutbox(settings, own_backend.topics.unique("id"))
    owner(outbox).begin()
    outbox.send([Outgoing(topic, b"key", b"late", partition=0)])
    place = Partition(topic, 0)
    end = own_backend.end_of(place)
    until(lambda: own_backend.end_of(place) > end, "the broker ends the transaction")
    with pytest.raises(FencedError):
        outbox.commit()
    owner(outbox).begin()
    outbox.send([Outgoing(topic, b"key", b"again", partition=0)])
    outbox.commit()
    assert published(own_backend, topic, 1) == [Published(b"key", b"again")]
    outbox.close()
