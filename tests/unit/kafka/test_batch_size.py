"""How many messages are asked for at once."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from stream_fs.kafka.message_batch import BatchSizer, batch_size


@pytest.mark.parametrize(
    ("size", "expected"),
    [(0, 2000), (1000, 2000), (4000, 1500), (10_000, 500), (20_000, 314), (5_000_000, 2)],
)
def test_small_messages_come_in_many_large_ones_in_few(size: int, expected: int) -> None:
    message = Message(topic="topic", partition=0, offset=0, value=bytes(size))
    for count in (1, 7, 100):
        assert batch_size([message] * count) == expected


def test_a_message_without_a_value_has_no_size() -> None:
    assert batch_size([Message(topic="topic", partition=0, offset=0)]) == 2000


@pytest.mark.parametrize(("size", "usual"), [(10, 2000), (10_000, 500)])
def test_batches_end_with_a_chunk(size: int, usual: int) -> None:
    message = Message(topic="topic", partition=0, offset=0, value=bytes(size))
    batches = BatchSizer()
    assert batches.next == 100
    batches.came([message] * 100)
    assert batches.next == usual - 100
    batches.came([message] * (usual - 100))
    assert batches.next == usual
    batches.came([message] * 3)  # there were no more
    assert batches.next == usual - 3
    batches.begin()
    assert batches.next == usual


def test_small_batches_end_anywhere() -> None:
    message = Message(topic="topic", partition=0, offset=0, value=bytes(20_000))
    batches = BatchSizer()
    batches.came([message] * 100)
    assert batches.next == 314
