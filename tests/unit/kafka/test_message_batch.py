"""From the client's messages to ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from confluent_kafka import KafkaError
from confluent_kafka import Message as Received

from stream_fs.kafka.message_batch import delivered, without_events
from stream_fs.pipeline.ports import Partition
from stream_fs.records import Message

ONE, TWO = Partition("topic", 1), Partition("topic", 2)


def received(partition: Partition, offset: int, value: bytes = b"value") -> Received:
    return Received(
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
    batch = [received(ONE, 5), received(ONE, 6), received(TWO, 0), received(ONE, 7)]
    found = delivered(batch, {ONE: 5, TWO: 0})
    assert offsets(found) == {ONE: [5, 6, 7], TWO: [0]}
    assert found[ONE][0] == Message("topic", 1, 5, 1005, b"key", b"value", ())


def test_columns_and_messages_say_the_same() -> None:
    batch = [received(ONE, offset, b"%d" % offset) for offset in (2, 3, 5)]
    found = delivered(batch, {ONE: 3})[ONE]
    assert len(found) == 2
    assert found.values() == [message.value for message in found] == [b"3", b"5"]
    assert found.offsets() == [message.offset for message in found] == [3, 5]
    assert found.timestamps() == [message.timestamp for message in found] == [1003, 1005]
    assert found[-1] == found[1] == found[1:][0]


def test_headers() -> None:
    message = Received(
        topic="topic", partition=1, offset=0, headers=[("a", b"1"), ("b", None)], timestamp=(1, 9)
    )
    ((converted,),) = delivered([message], {ONE: 0}).values()
    assert converted.headers == (("a", b"1"), ("b", None))
    assert (converted.key, converted.value) == (None, None)


def test_partitions_that_are_not_wanted_are_left_out() -> None:
    batch = [received(TWO, 0), received(ONE, 0), received(TWO, 1)]
    assert offsets(delivered(batch, {ONE: 0})) == {ONE: [0]}
    assert delivered(batch, {}) == {}


def test_messages_before_the_wanted_offset_are_left_out() -> None:
    batch = [received(ONE, 3), received(ONE, 4), received(TWO, 4)]
    assert offsets(delivered(batch, {ONE: 4, TWO: 5})) == {ONE: [4]}


def test_errors_are_handed_over_and_the_messages_around_them_kept() -> None:
    failure = Received(topic="topic", partition=1, error=KafkaError(KafkaError._TRANSPORT))
    failures: list[Received] = []
    batch = [received(ONE, 1), failure, received(ONE, 2)]
    messages = without_events(batch, failures.append)
    assert [message.offset() for message in messages] == [1, 2]
    assert failures == [failure]
