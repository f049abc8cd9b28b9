"""Ways to read a topic: as the service does, with a bare decode, blindly, by the client alone."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from itertools import count
from typing import Any, Protocol

import msgpack
import numpy as np
from confluent_kafka import Consumer, Message, TopicPartition
from numpy.typing import NDArray

from stream_fs.kafka import ClientSettings
from stream_fs.kafka.consumer import KafkaConsumer
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.pipeline.chunker import Chunker
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import ChunkPolicy
from stream_fs.wire import RecordDecoder
from tests.benchmarks.service.input_topics import TIMEOUT, Source, Workspace
from tests.benchmarks.service.records import Mix
from tests.support.settings import dead_letter_settings

BATCH = 500
CHUNK = 500
WAIT = 1.0
Matrix = NDArray[np.float32]


def raw(workspace: Workspace, source: Source) -> float:
    """Seconds of `Consumer.consume` alone."""
    return _bare(workspace, source, lambda _: None)


def joined(make: Callable[[Mix], Decoding], workspace: Workspace, source: Source) -> float:
    """Seconds of consuming, and of joining what is taken of the records of a chunk."""
    decoding = make(source.mix)
    parts: list[Any] = []

    def take(messages: Sequence[Message]) -> None:
        parts.extend(map(decoding.part, messages))
        while len(parts) >= CHUNK:
            decoding.joined(parts[:CHUNK])
            del parts[:CHUNK]

    return _bare(workspace, source, take)


def row_by_row(make: Callable[[Mix], Decoding], workspace: Workspace, source: Source) -> float:
    """Seconds of consuming, and of copying each view of each record into its row of a chunk."""
    decoding = make(source.mix)
    width = source.mix.dimension * source.mix.views
    rows, filled = np.empty((CHUNK, width), "<f4"), 0

    def take(messages: Sequence[Message]) -> None:
        nonlocal rows, filled
        for message in messages:
            if filled == CHUNK:
                rows, filled = np.empty((CHUNK, width), "<f4"), 0
            decoding.copy(message, rows[filled])
            filled += 1

    return _bare(workspace, source, take)


def ingest(workspace: Workspace, source: Source) -> float:
    """Seconds of all that the service does before the selector has its chunks."""
    partition = Partition(source.topic, 0)
    chunker = Chunker(RecordDecoder(source.mix.declared), dead_letter_settings(), 0, settled=0)
    chunks = count(1)

    def poll() -> int:
        messages = member.poll(WAIT).get(partition, ())
        if messages:
            chunker.add(messages)
            while chunker.take(next(chunks), ChunkPolicy(CHUNK, CHUNK)) is not None:
                pass
        return len(messages)

    group = workspace.topics.unique("ingest")
    assigned = _Assigned()
    settings = ClientSettings(workspace.bootstrap, group)
    offsets = OffsetReader.connect(settings)
    member = KafkaConsumer(settings, [source.topic], assigned, offsets, 1)
    with closing(member):
        while not assigned.partitions:
            member.poll(WAIT)
        member.resume(partition, 0)
        return timed(poll, source.count)


def timed(poll: Callable[[], int], records: int) -> float:
    """Seconds for so many records, at the pace since the first ones have come.

    Until then the client connects, and asks for offsets: that is measured elsewhere.
    """
    deadline = time.monotonic() + TIMEOUT
    while not (first := poll()):
        assert time.monotonic() < deadline, "nothing comes"
    begin, done = time.perf_counter(), first
    while done < records:
        done += poll()
    return (time.perf_counter() - begin) * records / (records - first)


class Decoding(Protocol):
    """A way from packed records that have every view to matrices."""

    def part(self, message: Message) -> Any:
        """What is kept of a record until its chunk is full."""

    def joined(self, parts: Sequence[Any]) -> Sequence[Matrix]:
        """The rows of a chunk, all together or view by view."""

    def copy(self, message: Message, row: Matrix) -> None:
        """The views of one record, side by side."""


class Unpacking:
    """Records read with msgpack's own decoder, and nothing checked."""

    def __init__(self, mix: Mix) -> None:
        self._names = mix.names
        self._width = mix.dimension

    def part(self, message: Message) -> dict[str, bytes]:
        """Its packed views."""
        found: dict[str, bytes] = msgpack.unpackb(message.value())["views"]
        return found

    def joined(self, parts: Sequence[dict[str, bytes]]) -> list[Matrix]:
        """For every view one row of each record."""
        return [
            np.frombuffer(b"".join([views[name] for views in parts]), "<f4").reshape(
                len(parts), self._width
            )
            for name in self._names
        ]

    def copy(self, message: Message, row: Matrix) -> None:
        """The views of one record, side by side."""
        views, width = self.part(message), self._width
        for number, name in enumerate(self._names):
            row[number * width : (number + 1) * width] = np.frombuffer(views[name], "<f4")


class Layout:
    """Where the rows are in records that all have every view: so far from the end, always.

    Nothing is looked at and nothing is checked: the floor of decoding, and not a decoder.
    """

    def __init__(self, mix: Mix) -> None:
        self._row = 4 * mix.dimension
        heads = [
            len(msgpack.packb({name: bytes(self._row)})) - 1 - self._row for name in mix.names[1:]
        ]
        self._places = [0]
        for head in heads:
            self._places.append(self._places[-1] + self._row + head)
        self._span = self._places[-1] + self._row

    def part(self, message: Message) -> bytes:
        """Its bytes from the first row on."""
        return message.value()[-self._span :]  # type: ignore[index]  # there are no tombstones

    def joined(self, parts: Sequence[bytes]) -> list[Matrix]:
        """One row for each record, its views side by side."""
        found = np.frombuffer(b"".join(parts), np.uint8).reshape(len(parts), self._span)
        rows = np.empty((len(parts), self._row * len(self._places)), np.uint8)
        for number, place in enumerate(self._places):
            start = number * self._row
            rows[:, start : start + self._row] = found[:, place : place + self._row]
        return [rows.view("<f4")]

    def copy(self, message: Message, row: Matrix) -> None:
        """The views of one record, side by side."""
        value: bytes = message.value()  # type: ignore[assignment]  # there are no tombstones
        start, width = len(value) - self._span, self._row // 4
        for number, place in enumerate(self._places):
            found = np.frombuffer(value, "<f4", width, start + place)
            row[number * width : (number + 1) * width] = found


DECODING = {
    "decode, joined": partial(joined, Unpacking),
    "decode, row by row": partial(row_by_row, Unpacking),
}
"""The least that makes matrices of records; which one is faster depends on their size."""
BLIND = {
    "blind copy, joined": partial(joined, Layout),
    "blind copy, row by row": partial(row_by_row, Layout),
}
"""The same for bytes that are known to be where they always are: no decoder can do with less."""


class _Assigned:
    """Holds what it is given."""

    def __init__(self) -> None:
        self.partitions: list[Partition] = []

    def assigned(self, partitions: Sequence[Partition]) -> None:
        self.partitions += partitions

    def revoked(self, partitions: Sequence[Partition]) -> None:
        pass

    def lost(self, partitions: Sequence[Partition]) -> None:
        pass


def _bare(workspace: Workspace, source: Source, take: Callable[[Sequence[Message]], None]) -> float:
    left = source.count

    def poll() -> int:
        nonlocal left
        # No more than there are: otherwise the last call would wait for others.
        messages = consumer.consume(min(BATCH, left), WAIT)
        left -= len(messages)
        take(messages)
        return len(messages)

    consumer = Consumer(
        {
            "bootstrap.servers": workspace.bootstrap,
            "group.id": workspace.topics.unique("bare"),
            "enable.auto.commit": False,
            "fetch.queue.backoff.ms": 10,  # without it the floor would be far too low
        }
    )
    with closing(consumer):
        consumer.assign([TopicPartition(source.topic, 0, 0)])
        return timed(poll, source.count)
