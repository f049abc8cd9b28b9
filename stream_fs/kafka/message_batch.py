"""Messages of one poll by partition, as columns: the hot path, where every call counts.

Of most messages only value, offset and timestamp are read. So they are passed on as columns, and a
`Message` is built only where one is asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeAlias, cast

from confluent_kafka import Message as ClientMessage

from stream_fs.pipeline.ports import Partition
from stream_fs.records import Headers, Message, Messages

_MAX_MESSAGES: Final = 2000
"""Of a call: `consume` of many messages costs half of what `poll` costs, and decoding has a cost of
its own for every batch."""
_FIRST_MESSAGES: Final = 100
"""Of the first call, before the size of messages is known."""
_MAX_BYTES: Final = 6 << 20
"""Of a call, approximately: large messages are consumed in small batches, to bound the memory."""

_Place: TypeAlias = tuple[str, int]
"""Topic and partition number."""


class MessageBatch(Messages):
    """Messages of one partition as the client has delivered them."""

    def __init__(self, messages: Sequence[ClientMessage], offsets: Sequence[int]) -> None:
        """`messages` contains no errors; `offsets` are theirs."""
        self._messages = messages
        self._offsets = offsets

    def __len__(self) -> int:
        return len(self._messages)

    def _at(self, position: int) -> Message:
        message = self._messages[position]
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
        return [message.value() for message in self._messages]

    def offsets(self) -> Sequence[int]:
        """The offset of every message."""
        return self._offsets

    def timestamps(self) -> list[int]:
        """The timestamp of every message."""
        return [message.timestamp()[1] for message in self._messages]


def without_events(
    received: Sequence[ClientMessage], handle: Callable[[ClientMessage], None]
) -> Sequence[ClientMessage]:
    """The messages; `handle` is called with every event: an error, or the end of a partition."""
    events = [message for message in received if message.error() is not None]
    if not events:
        return received
    for event in events:
        handle(event)
    return [message for message in received if message.error() is None]


def batches_by_partition(
    messages: Sequence[ClientMessage], wanted: Mapping[Partition, int]
) -> dict[Partition, MessageBatch]:
    """The messages of every wanted partition, from its wanted offset on."""
    batches: dict[Partition, MessageBatch] = {}
    for place, group in _by_place(messages).items():
        partition = Partition(*place)
        lowest = wanted.get(partition)
        if lowest is None:
            continue
        offsets = cast("list[int]", [message.offset() for message in group])
        if min(offsets) < lowest:
            group = [message for message in group if cast(int, message.offset()) >= lowest]
            offsets = [offset for offset in offsets if offset >= lowest]
        if group:
            batches[partition] = MessageBatch(group, offsets)
    return batches


def _by_place(messages: Sequence[ClientMessage]) -> dict[_Place, Sequence[ClientMessage]]:
    """Messages by topic and partition, in their order; mostly there is one partition."""
    places = cast("list[_Place]", [(m.topic(), m.partition()) for m in messages])
    if not places or places.count(places[0]) == len(places):
        return {places[0]: messages} if places else {}
    groups: dict[_Place, list[ClientMessage]] = {}
    for place, message in zip(places, messages, strict=True):
        groups.setdefault(place, []).append(message)
    return cast("dict[_Place, Sequence[ClientMessage]]", groups)


class BatchSizer:
    """Sizes the next batch by the messages of the last one.

    Batches that are larger than a chunk end where a chunk ends: one that is assembled from two
    batches has its rows copied once more.
    """

    def __init__(self, chunk_records: int) -> None:
        self._chunk_records = chunk_records
        self._size = _FIRST_MESSAGES
        self._in_chunk = 0  # messages of the chunk that is being filled

    def restart(self) -> None:
        """Begin with a new chunk, as an assigned partition does."""
        self._in_chunk = 0

    @property
    def next(self) -> int:
        """The number of messages to consume next."""
        return self._size - self._in_chunk if self._size >= self._chunk_records else self._size

    def update(self, messages: Sequence[ClientMessage]) -> None:
        """Learn the size of messages from a batch."""
        self._size = batch_size(messages, self._chunk_records)
        self._in_chunk = (self._in_chunk + len(messages)) % self._chunk_records


def batch_size(messages: Sequence[ClientMessage], chunk_records: int) -> int:
    """The number of messages of this size in a batch: a multiple of a chunk where it is larger."""
    sample = messages[:: max(1, len(messages) // 16)]
    size = sum(len(message.value() or b"") for message in sample) // len(sample)
    count = min(max(_MAX_BYTES // max(size, 1), 2), _MAX_MESSAGES)
    return count - count % chunk_records if count > chunk_records else count
