"""What the processes work through: one input topic, written once and read by every journey.

Small chunks with a snapshot every few of them; views that are missing, and bad records of several
kinds, alone and in runs, with keys and headers of their own.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import msgpack
import numpy as np
from confluent_kafka import Producer

from stream_fs.wire.encoding import encode_record

DIMENSIONS = {"a": 12, "b": 8}
CLUSTERS = 2
CHUNK, FIRST_CHUNK = 20, 40
"""Good records in a chunk; the first one has 20 for each cluster."""
SNAPSHOT_EVERY = 4
"""Chunks: there is a snapshot at 1, 5, 9, …"""

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
    """A filled input topic, and how many chunks it comes to."""

    topic: str
    chunks: int


def records_for(chunks: int) -> int:
    """Good records that fill so many chunks."""
    return FIRST_CHUNK + (chunks - 1) * CHUNK


def has_snapshot(chunk: int) -> bool:
    """Whether a snapshot is due with this chunk, as long as none was written out of turn."""
    return chunk % SNAPSHOT_EVERY == 1


def good_records(count: int, seed: int) -> Iterator[bytes]:
    """Records of as many clusters, a view missing from more than half of them."""
    rng = np.random.default_rng(seed)
    for number in range(count):
        group = int(rng.integers(CLUSTERS))
        views = {name: rng.random(len(ramp)) + group * ramp for name, ramp in _RAMP.items()}
        missing = rng.random()
        if missing < 0.6:
            del views["a" if missing < 0.3 else "b"]
        yield encode_record(views, f"r{number}")


def fill(bootstrap: str, topic: str, chunks: int, seed: int = 0) -> Content:
    """Write so many chunks, and half a one that never gets full."""
    rng = np.random.default_rng(seed)
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 5})
    for number, value in enumerate(good_records(records_for(chunks) + CHUNK // 2, seed)):
        if rng.random() < 0.05:
            for _ in range(int(rng.integers(1, 5))):
                kind = int(rng.integers(len(_BAD)))
                headers: dict[str, str | bytes | None] = {"kind": str(kind), "nothing": None}
                producer.produce(topic, _BAD[kind], f"bad-{number}", 0, headers=headers)
        producer.produce(topic, value, partition=0)
        producer.poll(0)
    left = producer.flush(60)
    assert not left, f"{left} records were not written"
    return Content(topic, chunks)
