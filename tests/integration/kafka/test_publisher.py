"""The publisher beyond its contract: sizes, missing partitions, and timeouts."""

from __future__ import annotations

from bisect import bisect_left
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import Producer

from stream_fs.errors import AbortableError, FatalError, FencedError
from stream_fs.kafka import dead_letters_spec
from stream_fs.kafka.publisher import KafkaPublisher
from stream_fs.pipeline.ports import OutgoingRecord, Partition
from stream_fs.records import BadRecord, Message, Payload
from stream_fs.service.topics import topic_problems, topic_specs
from stream_fs.wire.dead_letters import DeadLetter, dead_letter, dead_letter_limit
from tests.contracts.backend import Published
from tests.integration.kafka.backend import KafkaBackend
from tests.support.configurations import LEAST, loaded
from tests.support.existing_topics import Existing
from tests.support.topics import flush
from tests.support.waiting import owner, published, until


def test_a_record_larger_than_the_client_accepts(backend: KafkaBackend) -> None:
    topic = backend.topic()
    settings = replace(backend.settings(), largest_message=100_000)
    publisher = owner(KafkaPublisher(settings, backend.topics.unique("id")))
    publisher.begin()
    with pytest.raises(FatalError, match=rf"200003 bytes to {topic}.*max\.message\.bytes"):
        publisher.send([OutgoingRecord(topic, b"key", bytes(200_000))])
    publisher.abort()
    publisher.close()


def test_a_record_larger_than_the_topic_allows(backend: KafkaBackend) -> None:
    topic = backend.topics.create(config={"max.message.bytes": "10000"})
    publisher = owner(backend.transport().publisher(Partition(topic, 0)))
    publisher.begin()
    with pytest.raises(FatalError, match=r"max\.message\.bytes of the topic"):
        publisher.send(
            [OutgoingRecord(topic, b"key", bytes(size), partition=0) for size in (1, 20_000, 2)]
        )
    publisher.close()
    publisher = owner(backend.transport().publisher(Partition(topic, 0)))
    publisher.begin()
    publisher.send([OutgoingRecord(topic, b"key", b"small", partition=0)])
    publisher.commit()
    assert published(backend, topic, 1) == [Published(b"key", b"small")]
    publisher.close()


def test_a_dead_letter_of_the_largest_record_that_an_input_topic_may_hold(
    backend: KafkaBackend, tmp_path: Path
) -> None:
    """It is published whole, with the largest headers that are added to it."""
    largest = 100_000
    configuration = loaded(
        tmp_path, f"{LEAST}largest_message = {largest}\n[limits]\nrecord_bytes = {largest}\n"
    )

    def refused(allowed: int) -> bool:
        config = {"cleanup.policy": "delete", "max.message.bytes": str(allowed)}
        existing = Existing({"digits": (1, config)})
        existing.create(topic_specs(configuration, existing))
        return bool(topic_problems(configuration, existing))

    allowed = bisect_left(range(2 * largest), True, key=refused) - 1
    source = backend.topics.create(config={"max.message.bytes": str(allowed)})
    address = {"bootstrap.servers": backend.topics.bootstrap, "log_level": 0}
    producer = Producer({**address, "message.max.bytes": 2 * largest})

    def too_large(size: int) -> bool:
        failed: list[bool] = []
        producer.produce(
            source, bytes(size), on_delivery=lambda error, _: failed.append(error is not None)
        )
        flush(producer)
        return failed.pop()

    size = allowed - 200 + bisect_left(range(allowed - 200, allowed), True, key=too_large) - 1
    message = Message("t" * 249, 2**31 - 1, 2**63 - 1, 2**63 - 1, None, bytes(size))
    bad = BadRecord(0, "unknown_view", "\N{GRINNING FACE}" * 300)
    assert_carried(backend, largest, dead_letter(message, bad))
    letter = DeadLetter.of(message, bad, dead_letter_limit(largest))
    assert letter.payload == dead_letter(message, bad)


def test_the_largest_dead_letter(backend: KafkaBackend) -> None:
    largest, bad = 100_000, BadRecord(0, "malformed", "not MessagePack")
    limit = dead_letter_limit(largest)
    empty = Message("in", 0, 1, 2, b"key", b"", (("own", b"header"),))
    room = limit - DeadLetter.of(empty, bad, limit).size
    for size, shortened in ((room, False), (room + 1, True)):
        letter = DeadLetter.of(empty._replace(value=bytes(size)), bad, limit)
        assert bool(letter.size_headers) is shortened
        assert_carried(backend, largest, letter.payload)


def assert_carried(backend: KafkaBackend, largest: int, payload: Payload) -> None:
    """A dead letter is accepted by the client and by a topic as specified."""
    spec = dead_letters_spec("letters", 1, largest)
    topic = backend.topics.create(config=spec.config)
    settings = replace(backend.settings(), largest_message=largest)
    publisher = owner(KafkaPublisher(settings, backend.topics.unique("id")))
    publisher.begin()
    publisher.send([OutgoingRecord(topic, payload.key, payload.value, payload.headers)])
    publisher.commit()
    publisher.close()
    (found,) = published(backend, topic, 1)
    assert found == Published(payload.key, payload.value, payload.headers)


def test_a_partition_that_does_not_exist(backend: KafkaBackend) -> None:
    topic = backend.topic()
    publisher = owner(backend.transport().publisher(Partition(topic, 0)))
    publisher.begin()
    publisher.send(
        [OutgoingRecord(topic, b"key", b"value", partition=0)]
    )  # now the client knows the topic
    with pytest.raises(FatalError, match="create the topic"):
        publisher.send([OutgoingRecord(topic, b"key", b"value", partition=7)])
    publisher.abort()
    publisher.close()


def test_more_records_than_the_client_queues(backend: KafkaBackend) -> None:
    topic = backend.topic()
    settings = backend.settings(properties={"queue.buffering.max.messages": 10})
    publisher = owner(KafkaPublisher(settings, backend.topics.unique("id")))
    publisher.begin()
    offsets = publisher.send(
        [OutgoingRecord(topic, None, b"%d" % n, partition=0) for n in range(100)]
    )
    publisher.commit()
    assert offsets == list(range(100))
    publisher.close()


def test_a_producer_is_fenced_while_sending(backend: KafkaBackend) -> None:
    topic = backend.topic()
    name = backend.topics.unique("id")
    settings = backend.settings(properties={"queue.buffering.max.messages": 10})
    old = owner(KafkaPublisher(settings, name))
    old.begin()
    old.send([OutgoingRecord(topic, None, b"old", partition=0)])
    new = owner(KafkaPublisher(settings, name))
    with pytest.raises(FencedError) as caught:
        old.send([OutgoingRecord(topic, None, b"old", partition=0)] * 1000)
    assert not caught.value.outcome_unknown
    with pytest.raises(FencedError, match="acquire it first"):
        old.begin()
    assert backend.published(topic) == []
    old.close()
    new.close()


def test_records_that_are_not_acknowledged_in_time_void_the_transaction(
    backend: KafkaBackend,
) -> None:
    topic = backend.topic()
    settings = replace(backend.settings(), timeout=0.000_001)
    publisher = owner(KafkaPublisher(settings, backend.topics.unique("id")))
    publisher.begin()
    with pytest.raises(AbortableError, match="not acknowledged"):
        publisher.send(
            [OutgoingRecord(topic, None, bytes(900_000), partition=0) for _ in range(20)]
        )
    publisher.close()
    assert backend.published(topic) == []


def test_a_transaction_that_times_out_is_fenced(own_backend: KafkaBackend) -> None:
    topic = own_backend.topic()
    settings = replace(own_backend.settings(), transaction_timeout=5.0)
    publisher = KafkaPublisher(settings, own_backend.topics.unique("id"))
    owner(publisher).begin()
    publisher.send([OutgoingRecord(topic, b"key", b"late", partition=0)])
    place = Partition(topic, 0)
    end = own_backend.end_of(place)
    until(lambda: own_backend.end_of(place) > end, "the broker ends the transaction")
    with pytest.raises(FencedError, match="open for longer than 5 s") as caught:
        publisher.commit()
    assert caught.value.outcome_unknown, "there is no other owner"
    owner(publisher).begin()
    publisher.send([OutgoingRecord(topic, b"key", b"again", partition=0)])
    publisher.commit()
    assert published(own_backend, topic, 1) == [Published(b"key", b"again")]
    publisher.close()
