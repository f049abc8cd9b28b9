"""Loads of a stream, and the bound of the memory for each."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.wire.records.encoder import encode_record
from tests.support.recovery.content import CLUSTERS, DIMENSIONS, good_records

QUEUE_MEGABYTES = 64 + 50
"""Read ahead by the client (queued.max.messages.kbytes), and one answer more (fetch.max.bytes)."""
QUEUE_RECORDS, RECORD_OVERHEAD = 100_000, 512
"""Records that the client reads ahead (queued.min.messages), and the overhead of each in bytes."""
MODELS_HELD = 5
"""The model, the updated model and the working memory of the update, the encoded snapshot, and its
copy in the client until the broker has it."""
CHUNKS_HELD = 6
"""The records of a chunk in single precision, once more as they are handed on, and in double."""
SMALL, WIDE = 500, 20
"""Records in a chunk of small ones, and of large ones."""
WIDE_DIMENSIONS = {"a": 120_000, "b": 120_000}
WIDEST = 970_000
"""The limit of a record in bytes: slightly above the size of the records."""


@dataclass(frozen=True)
class Load:
    """Records for one partition of a topic, and the configuration of the stream."""

    name: str
    chunks: int
    chunk: int
    values: Iterable[bytes]
    partitions: int = 1
    hot: int = 0
    dimensions: Mapping[str, int] | None = None
    settings: Sequence[str] = ()

    @property
    def views(self) -> Mapping[str, int]:
        return self.dimensions or DIMENSIONS

    def bound(self, snapshot: float) -> float:
        """Megabytes beyond those of an idle process, with snapshots of so many megabytes."""
        features = sum(self.views.values())
        chunk = max(self.chunk, 20 * CLUSTERS) * features * 4
        queued = min(QUEUE_RECORDS * RECORD_OVERHEAD, self.chunks * self.chunk * RECORD_OVERHEAD)
        bytes_held = CHUNKS_HELD * chunk + queued
        return QUEUE_MEGABYTES + MODELS_HELD * snapshot + bytes_held / 1e6


def burst(count: int) -> Load:
    """So many small records at once."""
    some = list(itertools.islice(good_records(0), 5000))
    return Load(
        f"a burst of {count} records",
        chunks=count // SMALL,
        chunk=SMALL,
        values=itertools.islice(itertools.cycle(some), count),
    )


def hot(partitions: int, chunks: int) -> Load:
    """All records in one partition of several."""
    return Load(
        f"1 hot partition of {partitions}",
        chunks=chunks,
        chunk=SMALL,
        values=itertools.islice(good_records(1), chunks * SMALL),
        partitions=partitions,
        hot=partitions // 2,
    )


def wide(chunks: int) -> Load:
    """Records of almost a megabyte, and one that exceeds the limit."""

    def values() -> Iterator[bytes]:
        rng = np.random.default_rng(2)
        for number in range(20 * CLUSTERS + (chunks - 1) * WIDE):
            group = rng.integers(CLUSTERS)
            views = {
                name: rng.random(dimension, np.float32) + group * (np.arange(dimension) % 2)
                for name, dimension in WIDE_DIMENSIONS.items()
            }
            yield encode_record(views, f"r{number}")
            if number == 5:
                yield encode_record(
                    views, "x" * (WIDEST + 10_000 - 4 * sum(map(len, views.values())))
                )

    return Load(
        "records of 0.96 MB, 1 above the limit",
        chunks=chunks,
        chunk=WIDE,
        values=values(),
        dimensions=WIDE_DIMENSIONS,
        settings=("output.top=50", f"limits.record_bytes={WIDEST}", "checkpoint.every_chunks=2"),
    )
