"""How many messages are asked for at once."""

from __future__ import annotations

import pytest
from confluent_kafka import Message

from stream_fs.kafka.consumer import batch_size


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
