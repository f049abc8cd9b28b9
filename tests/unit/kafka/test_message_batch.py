"""Messages by partition, as columns, and the size of the next batch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import pytest
from confluent_kafka import KafkaError
from confluent_kafka import Message as ClientMessage

from stream_fs.kafka.message_batch import (
    BatchSizer,
    batch_size,
    batches_by_partition,
    without_events,
)
from stream_fs.pipeline.ports import Partition
from stream_fs.records import Message

ONE, TWO = Partition("topic", 1), Partition("topic", 2)


def message(partition: Partition, offset: int, value: bytes = b"value") -> ClientMessage:
    return ClientMessage(
        topic=partition.topic,
        partition=partition.number,
        offset=offset,
        key=b"key",
        value=value,
        timestamp=(1, 1000 + offset),
    )


def offsets(found: Mapping[Partition, Sequence[Message]]) -> dict[Partition, list[int]]:
    return {partition: [m.offset for m in messages] for partition, messages in found.items()}


def test_messages_by_partition_in_their_order() -> None:
    batch = [message(ONE, 5), message(ONE, 6), message(TWO, 0), message(ONE, 7)]
    found = batches_by_partition(batch, {ONE: 5, TWO: 0})
    assert offsets(found) == {ONE: [5, 6, 7], TWO: [0]}
    assert found[ONE][0] == Message("topic", 1, 5, 1005, b"key", b"value", ())


def test_columns_and_messages_say_the_same() -> None:
    batch = [message(ONE, offset, b"%d" % offset) for offset in (2, 3, 5)]
    found = batches_by_partition(batch, {ONE: 3})[ONE]
    assert len(found) == 2
    assert found.values() == [one.value for one in found] == [b"3", b"5"]
    assert found.offsets() == [one.offset for one in found] == [3, 5]
    assert found.timestamps() == [one.timestamp for one in found] == [1003, 1005]
    assert found[-1] == found[1] == found[1:][0]


def test_headers() -> None:
    raw = ClientMessage(
        topic="topic", partition=1, offset=0, headers=[("a", b"1"), ("b", None)], timestamp=(1, 9)
    )
    ((converted,),) = batches_by_partition([raw], {ONE: 0}).values()
    assert converted.headers == (("a", b"1"), ("b", None))
    assert (converted.key, converted.value) == (None, None)


def test_partitions_that_are_not_wanted_are_left_out() -> None:
    batch = [message(TWO, 0), message(ONE, 0), message(TWO, 1)]
    assert offsets(batches_by_partition(batch, {ONE: 0})) == {ONE: [0]}
    assert batches_by_partition(batch, {}) == {}


def test_messages_before_the_wanted_offset_are_left_out() -> None:
    batch = [message(ONE, 3), message(ONE, 4), message(TWO, 4)]
    assert offsets(batches_by_partition(batch, {ONE: 4, TWO: 5})) == {ONE: [4]}


def test_errors_are_handed_over_and_the_messages_around_them_kept() -> None:
    failure = ClientMessage(topic="topic", partition=1, error=KafkaError(KafkaError._TRANSPORT))
    failures: list[ClientMessage] = []
    batch = [message(ONE, 1), failure, message(ONE, 2)]
    messages = without_events(batch, failures.append)
    assert [one.offset() for one in messages] == [1, 2]
    assert failures == [failure]


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, 2000), (1000, 2000), (4000, 1500), (10_000, 500), (20_000, 314), (5_000_000, 2)],
)
def test_a_batch_has_many_small_messages_or_few_large_ones(size: int, expected: int) -> None:
    large = ClientMessage(topic="topic", partition=0, offset=0, value=bytes(size))
    for count in (1, 7, 100):
        assert batch_size([large] * count, 500) == expected


def test_a_message_without_a_value_has_size_zero() -> None:
    assert batch_size([ClientMessage(topic="topic", partition=0, offset=0)], 500) == 2000


@pytest.mark.parametrize(("size", "usual"), [(10, 2000), (10_000, 500)])
def test_batches_end_with_a_chunk(size: int, usual: int) -> None:
    large = ClientMessage(topic="topic", partition=0, offset=0, value=bytes(size))
    sizer = BatchSizer(500)
    assert sizer.next == 100
    sizer.update([large] * 100)
    assert sizer.next == usual - 100
    sizer.update([large] * (usual - 100))
    assert sizer.next == usual
    sizer.update([large] * 3)  # no more had arrived
    assert sizer.next == usual - 3
    sizer.restart()
    assert sizer.next == usual


def test_batches_smaller_than_a_chunk_are_not_aligned() -> None:
    large = ClientMessage(topic="topic", partition=0, offset=0, value=bytes(20_000))
    sizer = BatchSizer(500)
    sizer.update([large] * 100)
    assert sizer.next == 314


def test_without_a_chunk_size_batches_are_not_aligned() -> None:
    small = ClientMessage(topic="topic", partition=0, offset=0, value=bytes(4_100))
    sizer = BatchSizer(1)
    sizer.update([small] * 100)
    assert sizer.next == 1534
