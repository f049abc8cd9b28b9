"""From the client's messages to ours, by partition: the hot path, where every call counts.

Of most messages only value, offset and timestamp are ever looked at. So they are handed on as
columns, and `Message`s are made of those that somebody asks for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, cast

from confluent_kafka import Message as Received

from stream_fs.pipeline.ports import Partition
from stream_fs.records import Headers, Message, Messages

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


class BatchSizer:
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


Place = tuple[str, int]
"""Topic and partition."""


class MessageBatch(Messages):
    """Messages of one partition as the client has delivered them."""

    def __init__(self, received: Sequence[Received], offsets: Sequence[int]) -> None:
        """`received` are messages and no errors; `offsets` are theirs."""
        self._received = received
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._received)

    def _at(self, position: int) -> Message:
        message = self._received[position]
        headers = message.headers()
        return Message(
            cast(str, message.topic()),
            cast(int, message.partition()),
            self._offsets[position],
            message.timestamp()[1],
            message.key(),
            message.value(),
            () if headers is None else cast(Headers, tuple(headers)),
        )

    def values(self) -> list[bytes | None]:
        """The value of every message."""
        return [message.value() for message in self._received]

    def offsets(self) -> Sequence[int]:
        """The offset of every message."""
        return self._offsets

    def timestamps(self) -> list[int]:
        """The timestamp of every message."""
        return [message.timestamp()[1] for message in self._received]


def without_events(
    received: Sequence[Received], handle: Callable[[Received], None]
) -> Sequence[Received]:
    """The messages; `handle` is called with the events: errors, and ends of partitions."""
    events = [message for message in received if message.error() is not None]
    if not events:
        return received
    for event in events:
        handle(event)
    return [message for message in received if message.error() is None]


def delivered(
    received: Sequence[Received], wanted: Mapping[Partition, int]
) -> dict[Partition, MessageBatch]:
    """The messages from the offset that is wanted of their partition on."""
    found: dict[Partition, MessageBatch] = {}
    for place, messages in _by_place(received).items():
        partition = Partition(*place)
        lowest = wanted.get(partition)
        if lowest is None:
            continue
        offsets = cast("list[int]", [message.offset() for message in messages])
        if min(offsets) < lowest:
            messages = [message for message in messages if cast(int, message.offset()) >= lowest]
            offsets = [offset for offset in offsets if offset >= lowest]
        if messages:
            found[partition] = MessageBatch(messages, offsets)
    return found


def _by_place(received: Sequence[Received]) -> dict[Place, Sequence[Received]]:
    """Messages by topic and partition, in their order; mostly they are all of one."""
    places = cast("list[Place]", [(m.topic(), m.partition()) for m in received])
    if not places or places.count(places[0]) == len(places):
        return {places[0]: received} if places else {}
    found: dict[Place, list[Received]] = {}
    for place, message in zip(places, received, strict=True):
        found.setdefault(place, []).append(message)
    return cast("dict[Place, Sequence[Received]]", found)
