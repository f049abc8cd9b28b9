"""From the client's messages to ours, by partition: the hot loop, where every call counts."""

from __future__ import annotations

from collections.abc import Callable, MutableMapping, Sequence
from typing import Final, cast

from confluent_kafka import Message as Received

from stream_fs.pipeline.ports import Partition
from stream_fs.records import Message

Headers = tuple[tuple[str, bytes | None], ...]
_NO_HEADERS: Final[Headers] = ()


def delivered(
    received: Sequence[Received],
    wanted: MutableMapping[tuple[str, int], int],
    failed: Callable[[Received], None],
) -> dict[Partition, list[Message]]:
    """The messages at or behind the offset that is wanted of their partition; the others are old.

    Moves `wanted` on. `failed` gets what is an error and not a message.
    """
    batches: dict[Partition, list[Message]] = {}
    topic, number = "", -1
    lowest: int | None = None
    batch: list[Message] = []
    for message in received:
        if message.error() is not None:
            failed(message)
            continue
        # Messages of a partition come in long runs.
        if message.partition() != number or message.topic() != topic:
            topic, number = cast(str, message.topic()), cast(int, message.partition())
            lowest = wanted.get((topic, number))
            if lowest is not None:
                batch = batches.setdefault(Partition(topic, number), [])
        offset = message.offset()
        if lowest is None or offset is None or offset < lowest:
            continue
        headers = message.headers()
        batch.append(
            Message(
                topic,
                number,
                offset,
                message.timestamp()[1],
                message.key(),
                message.value(),
                _NO_HEADERS if headers is None else cast(Headers, tuple(headers)),
            )
        )
    found = {partition: batch for partition, batch in batches.items() if batch}
    for partition, batch in found.items():
        wanted[partition] = batch[-1].offset + 1
    return found
