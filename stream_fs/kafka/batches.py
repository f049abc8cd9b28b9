"""How many messages to ask for at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from confluent_kafka import Message as Received

_MOST: Final = 2000
"""Messages a call, at most: `consume` with many costs half of what `poll` costs, and decoding has
costs of its own for every batch."""
_FIRST: Final = 100
"""As long as nothing is known of the messages."""
_MOST_BYTES: Final = 6 << 20
"""Bytes a call, about: large messages come in small batches, so that memory stays bounded."""
_CHUNK: Final = 500
"""The usual size of a chunk: larger batches end with one, so that it is not put together of two
batches, for which its rows are copied once more."""


class Batches:
    """Sizes the next batch by those that have come."""

    def __init__(self) -> None:
        self._size = _FIRST
        self._begun = 0  # messages of a chunk that is not full

    def begin(self) -> None:
        """Whoever has got a partition begins with a chunk."""
        self._begun = 0

    @property
    def next(self) -> int:
        """How many messages to ask for."""
        return self._size - self._begun if self._size >= _CHUNK else self._size

    def came(self, received: Sequence[Received]) -> None:
        """These have come."""
        self._size = batch_size(received)
        self._begun = (self._begun + len(received)) % _CHUNK


def batch_size(received: Sequence[Received]) -> int:
    """How many messages like these are a batch."""
    sample = received[:: max(1, len(received) // 16)]
    size = sum(len(message.value() or b"") for message in sample) // len(sample)
    count = min(max(_MOST_BYTES // max(size, 1), 2), _MOST)
    return count - count % _CHUNK if count > _CHUNK else count
