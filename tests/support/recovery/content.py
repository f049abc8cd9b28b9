"""The input of the runs: one topic, written once and read by every run.

Small chunks with a snapshot every few of them, missing views, and bad records of several kinds,
alone and in sequences, with keys and headers of their own.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass

import msgpack
import numpy as np
from confluent_kafka import Producer

from stream_fs.wire.records.encoder import encode_record
from tests.support.topics import flush

DIMENSIONS = {"a": 12, "b": 8}
CLUSTERS = 2
CHUNK, FIRST_CHUNK = 20, 40
"""Good records in a chunk; the first one has 20 for each cluster."""
SNAPSHOT_EVERY = 4
"""Chunks: there is a snapshot at 1, 5, 9, …"""

_PIECES = 12
_RAMP = {name: np.arange(dimension) % 3 for name, dimension in DIMENSIONS.items()}
_BAD = (
    b"not a record",
    b"",
    encode_record({"a": np.zeros(11)}),
    encode_record({"a": np.full(12, np.nan)}),
    encode_record({"c": np.zeros(3)}),
    encode_record({"a": None, "b": None}),
    msgpack.packb({"v": 9, "views": {}}),
)


@dataclass(frozen=True)
class Content:
    """An input topic, and the chunks in it when everything is written."""

    topic: str
    chunks: int


def records_for(chunks: int) -> int:
    """Good records that fill so many chunks."""
    return FIRST_CHUNK + (chunks - 1) * CHUNK


def chunks_in(records: int) -> int:
    """Chunks that so many good records fill."""
    return 1 + (records - FIRST_CHUNK) // CHUNK if records >= FIRST_CHUNK else 0


def has_snapshot(chunk: int) -> bool:
    """Whether a snapshot is due with this chunk, unless an unscheduled one was written."""
    return chunk % SNAPSHOT_EVERY == 1


def good_records(seed: int) -> Iterator[bytes]:
    """An endless sequence of records of two clusters; more than half of them lack a view."""
    rng = np.random.default_rng(seed)
    for number in itertools.count():
        group = int(rng.integers(CLUSTERS))
        views = {name: rng.random(len(ramp)) + group * ramp for name, ramp in _RAMP.items()}
        missing = rng.random()
        if missing < 0.6:
            del views["a" if missing < 0.3 else "b"]
        yield encode_record(views, f"r{number}")


class Source:
    """Writes records to a partition; after one in twenty come bad ones, unless it is `clean`."""

    def __init__(
        self, bootstrap: str, topic: str, partition: int = 0, seed: int = 0, *, clean: bool = False
    ) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "linger.ms": 5,
                # Each once and in their order, also when the broker is restarted meanwhile.
                "enable.idempotence": True,
                # A failed delivery raises an error.
                "log_level": 0,
            }
        )
        self._place = (topic, partition)
        self._records = good_records(seed)
        self._chance = np.random.default_rng(seed)
        self._share = 0.0 if clean else 0.05

    def write(self, good: int, timeout: float = 60) -> None:
        """Write so many good records, and the bad ones among them, within the timeout."""
        topic, partition = self._place
        for value in itertools.islice(self._records, good):
            self._producer.produce(topic, value, partition=partition)
            if self._chance.random() < self._share:
                self._write_bad(int(self._chance.integers(1, 5)))
            self._producer.poll(0)
        flush(self._producer, timeout)

    def _write_bad(self, count: int) -> None:
        topic, partition = self._place
        for kind in self._chance.integers(len(_BAD), size=count).tolist():
            headers: dict[str, str | bytes | None] = {"kind": str(kind), "nothing": None}
            self._producer.produce(topic, _BAD[kind], f"bad-{kind}", partition, headers=headers)


def pieces(content: Content, seed: int = 0) -> list[int]:
    """Good records to write at a time: in all, every chunk, and half a chunk that is never filled.

    They end anywhere in a chunk.
    """
    total = records_for(content.chunks) + CHUNK // 2
    inner = np.random.default_rng(seed).choice(total - 1, _PIECES - 1, replace=False) + 1
    return [int(piece) for piece in np.diff([0, *np.sort(inner), total])]
