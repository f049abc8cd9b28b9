"""The consumer beyond its contract: slow members, missing topics, and lost seeks."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from confluent_kafka import OFFSET_END, KafkaError, KafkaException, TopicPartition
from confluent_kafka.cimpl import NewTopic

from stream_fs.errors import FatalError, OffsetGone, RetriableError
from stream_fs.kafka import Rebalance
from stream_fs.kafka import consumer as module
from stream_fs.kafka.clients import input_consumer
from stream_fs.kafka.consumer import KafkaConsumer
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.kafka.settings import Property
from stream_fs.pipeline.ports import Partition
from tests.integration.kafka.backend import KafkaBackend
from tests.support.topics import TIMEOUT_SECONDS, Topics
from tests.support.waiting import Member, until


@pytest.mark.parametrize("rebalance", Rebalance)
def test_a_member_that_does_not_poll_loses_its_partitions_and_gets_them_back(
    topics: Topics, rebalance: Rebalance, caplog: pytest.LogCaptureFixture
) -> None:
    backend = KafkaBackend(topics, rebalance)
    partition = Partition(backend.topic(), 0)
    for number in range(3):
        backend.produce(partition, b"%d" % number)
    short: dict[str, Property] = {"max.poll.interval.ms": 6000}
    settings = backend.settings(properties=short)
    member = Member()
    source = KafkaConsumer(settings, [partition.topic], member, OffsetReader.connect(settings), 1)
    member.holds(source, {partition})
    source.resume(partition, 1)
    member.receives(source, partition, 2)

    def alone() -> bool:
        (answer,) = topics.admin.describe_consumer_groups([settings.group]).values()
        return not answer.result(TIMEOUT_SECONDS).members

    until(alone, "the group removes the member")
    member.polls(source, lambda: "lost" in dict(member.events), "the loss")
    member.holds(source, {partition})
    events = [event for event, _ in member.events]
    assert set(events) == {"assigned", "lost"}, events  # on a busy machine more than once
    assert "max.poll.interval.ms" in caplog.text
    member.messages.clear()
    backend.produce(partition, b"new")
    assert source.poll(0.2) == {}  # silent, as every newly assigned partition
    source.resume(partition, 2)
    member.receives(source, partition, 2)
    assert member.offsets(partition) == [2, 3]
    source.close()


@pytest.mark.parametrize("place", [0, 4, 11])
def test_an_offset_out_of_the_log_is_refused_also_right_after_the_assignment(
    backend: KafkaBackend, place: int
) -> None:
    partition = Partition(backend.topic(), 0)
    for number in range(10):
        backend.produce(partition, b"%d" % number)
    backend.delete_below(partition, 5)

    class Eager(Member):
        def assigned(self, partitions: Sequence[Partition]) -> None:
            super().assigned(partitions)
            source.resume(partition, place)

    member = Eager()
    source: KafkaConsumer = backend.transport().input([partition.topic], member)
    with pytest.raises(OffsetGone, match=rf"{partition}: offset {place} .*{partition.flags} --to"):
        member.receives(source, partition, 1)
    source.close()


def test_a_topic_that_comes_later(backend: KafkaBackend, caplog: pytest.LogCaptureFixture) -> None:
    topic = backend.topics.unique("later")
    settings = backend.settings(properties={"topic.metadata.refresh.interval.ms": 200})
    member = Member()
    source = KafkaConsumer(settings, [topic], member, OffsetReader.connect(settings), 1)
    member.polls(source, lambda: topic in caplog.text, "the missing topic")
    backend.topics.admin.create_topics([NewTopic(topic, 1)])[topic].result(TIMEOUT_SECONDS)
    member.holds(source, {Partition(topic, 0)})
    source.close()
    backend.topics.admin.delete_topics([topic])[topic].result(TIMEOUT_SECONDS)


def test_a_failed_commit_of_a_group_offset_is_logged(
    backend: KafkaBackend, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    partition = Partition(backend.topic(), 0)
    member = Member()
    source = backend.transport().input([partition.topic], member)
    member.holds(source, {partition})
    missing = Partition(backend.topics.unique("missing"), 3)
    source.commit_group_offset({missing: 7})
    text = f"group offsets are not committed: {missing} 7"
    member.polls(source, lambda: text in caplog.text, "the failure")
    source.close()


def test_a_seek_that_the_client_refuses_is_retried(
    backend: KafkaBackend, monkeypatch: pytest.MonkeyPatch
) -> None:
    partition = Partition(backend.topic(), 0)
    backend.produce(partition, b"0")
    backend.produce(partition, b"1")
    refusals = 3

    class Reluctant:
        """A client that refuses the first seeks."""

        def __init__(self, *arguments: object) -> None:
            self._consumer = input_consumer(*arguments)  # type: ignore[arg-type]  # passed through

        def __getattr__(self, name: str) -> object:
            return getattr(self._consumer, name)

        def seek(self, place: TopicPartition) -> None:
            nonlocal refusals
            if refusals:
                refusals -= 1
                raise KafkaException(KafkaError(KafkaError._STATE))
            self._consumer.seek(place)

    monkeypatch.setattr(module, "input_consumer", Reluctant)
    member = Member()
    source = backend.transport().input([partition.topic], member)
    member.holds(source, {partition})
    source.resume(partition, 1)
    member.receives(source, partition, 1)
    assert refusals == 0
    assert member.offsets(partition) == [1]
    source.close()


def test_the_end_of_a_partition_that_was_never_read_is_unknown(backend: KafkaBackend) -> None:
    source = backend.transport().input([backend.topic()], Member())
    assert source.known_end(Partition(backend.topics.unique("nowhere"), 3)) is None
    source.close()


def test_records_that_cannot_be_delivered_are_not_unread(backend: KafkaBackend) -> None:
    partition = Partition(backend.topic(), 0)
    producer = backend.transactional_producer()
    for commit in (True, False, False):
        backend.transaction(producer, partition, [b"value"] * 3, commit=commit)
    member = Member()
    source = backend.transport().input([partition.topic], member)
    member.holds(source, {partition})
    source.resume(partition, 0)
    member.receives(source, partition, 3)
    # Behind the third record there are three markers and six aborted records.
    member.polls(source, lambda: source.known_end(partition) == 12, "the end")
    member.polls(source, lambda: source.unread(partition, 3) == 0, "the last marker")

    backend.transaction(producer, partition, [b"value"] * 5, commit=None)
    member.polls(source, lambda: source.known_end(partition) == 17, "the open transaction")
    assert source.unread(partition, 3) == 0

    source.pause(partition)
    producer.commit_transaction(TIMEOUT_SECONDS)
    member.polls(source, lambda: source.unread(partition, 3) == 6, "what was committed")
    source.resume(partition, 3)
    member.receives(source, partition, 8)
    assert member.offsets(partition) == [0, 1, 2, *range(12, 17)]
    member.polls(source, lambda: source.unread(partition, 17) == 0, "the last marker")
    source.close()


def test_a_partition_that_is_not_assigned_cannot_be_resumed(backend: KafkaBackend) -> None:
    partition = Partition(backend.topic(), 0)
    member = Member()
    source = backend.transport().input([partition.topic], member)
    member.holds(source, {partition})
    with pytest.raises(FatalError, match="resuming nowhere/0 at 0"):
        source.resume(Partition("nowhere", 0), 0)
    source.close()


@pytest.mark.parametrize("more", [0, 3])
def test_a_seek_that_the_client_forgets_skips_nothing(topics: Topics, more: int) -> None:
    backend = KafkaBackend(topics)
    partition = Partition(backend.topic(), 0)
    for _ in range(5):
        backend.produce(partition, b"value")
    member = Member()
    source = backend.transport().input([partition.topic], member)
    member.holds(source, {partition})
    source.resume(partition, 0)
    source._consumer.seek(TopicPartition(partition.topic, partition.number, OFFSET_END))
    for _ in range(more):
        backend.produce(partition, b"later")
    member.receives(source, partition, 5 + more)
    assert member.offsets(partition) == list(range(5 + more))
    source.close()


@pytest.mark.parametrize("rebalance", Rebalance)
def test_the_client_never_looks_up_an_end_itself(
    topics: Topics, rebalance: Rebalance, caplog: pytest.LogCaptureFixture
) -> None:
    """When it finds one after a seek, it forgets the seek and skips records."""
    backend = KafkaBackend(topics, rebalance)
    partition = Partition(backend.topic(), 0)
    backend.produce(partition, b"value")
    caplog.set_level(logging.DEBUG, "stream_fs")
    settings = backend.settings(properties={"debug": "topic"})
    member = Member()
    source = KafkaConsumer(settings, [partition.topic], member, OffsetReader.connect(settings), 1)
    member.holds(source, {partition})
    source.resume(partition, 0)
    member.receives(source, partition, 1)
    source.close()
    assert f"Start fetch for {partition.topic} [0]" in caplog.text
    assert "logical offset" not in caplog.text


@pytest.mark.parametrize("rebalance", Rebalance)
def test_partitions_with_unknown_ends_are_read_although_the_first_fetch_fails(
    topics: Topics,
    rebalance: Rebalance,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    def no_answer(_: OffsetReader, __: Sequence[Partition]) -> Mapping[Partition, int]:
        raise RetriableError("no answer")

    monkeypatch.setattr(OffsetReader, "ends", no_answer)
    caplog.set_level(logging.DEBUG, "stream_fs")
    backend = KafkaBackend(topics, rebalance)
    topic = backend.topic(3)
    whole, cut, idle = (Partition(topic, number) for number in range(3))
    for partition in (whole, cut, idle):
        for _ in range(10):
            backend.produce(partition, b"value")
    for partition in (cut, idle):
        backend.delete_below(partition, 5)

    class Hasty:
        """A client that fetches before it is paused, which fails where offset 0 is gone."""

        def __init__(self, *arguments: object) -> None:
            self._consumer = input_consumer(*arguments)  # type: ignore[arg-type]  # passed through
            self._pauses = 0

        def __getattr__(self, name: str) -> object:
            return getattr(self._consumer, name)

        def subscribe(self, topics: list[str], on_assign: Callable[..., None], **more: Any) -> None:
            self._consumer.subscribe(
                topics, on_assign=lambda _, places: on_assign(self, places), **more
            )

        def pause(self, places: list[TopicPartition]) -> None:
            self._pauses += bool(places)
            if self._pauses > 1:
                self._consumer.pause(places)

    monkeypatch.setattr(module, "input_consumer", Hasty)
    member = Member()
    settings = backend.settings(properties={"debug": "topic"})
    source = KafkaConsumer(settings, [topic], member, OffsetReader.connect(settings), 1)
    member.holds(source, {whole, cut, idle})
    failures = [f"reading {partition}: fetch failed" for partition in (cut, idle)]
    member.polls(source, lambda: all(one in caplog.text for one in failures), "failed fetches")
    source.resume(whole, 3)
    source.resume(cut, 6)
    member.receives(source, whole, 7)
    member.receives(source, cut, 4)
    assert f"{cut} is assigned again" in caplog.text
    backend.produce(cut, b"later")
    member.receives(source, cut, 5)
    assert member.offsets(whole) == list(range(3, 10))
    assert member.offsets(cut) == list(range(6, 11))
    assert idle not in member.messages
    source.resume(idle, 5)
    member.receives(source, idle, 5)
    assert member.offsets(idle) == list(range(5, 10))
    assert "logical offset" not in caplog.text  # it would return to the end
    source.close()


def test_a_single_record_is_not_delayed(backend: KafkaBackend) -> None:
    partition = Partition(backend.topic(), 0)
    backend.produce(partition, b"alone")
    member = Member()
    source = backend.transport().input([partition.topic], member)
    member.holds(source, {partition})
    source.resume(partition, 0)
    began = time.monotonic()
    member.poll(source, TIMEOUT_SECONDS)
    assert member.offsets(partition) == [0]
    assert time.monotonic() - began < TIMEOUT_SECONDS / 2, "it waited for a whole batch"
    source.close()
