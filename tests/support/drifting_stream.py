"""A stream whose chunks have different leading features."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from stream_fs.pipeline.settings import StreamSettings
from stream_fs.selector import View, params
from stream_fs.wire.declared import DeclaredView
from stream_fs.wire.records.encoder import encode_record
from tests.support.memory_broker import MemoryBroker
from tests.support.simulated_process import (
    CLUSTERS,
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    settings,
)

ROWS = 15
"""Records of each chunk."""
DIMENSIONS = {"wide": 40, "narrow": 6}
CONFIGURATION = f"""
[stream]
name = "s"
topics = ["{TOPIC}"]

[[views]]
name = "wide"
dimension = {DIMENSIONS["wide"]}

[[views]]
name = "narrow"
dimension = {DIMENSIONS["narrow"]}

[selector]
clusters = {CLUSTERS}

[kafka]
bootstrap = "localhost:9092"
"""
"""The configuration of a service with this stream."""


def drifting_settings(**changes: Any) -> StreamSettings:
    """Settings of the stream; all features are published, as by default."""
    selector = params(
        [View(name, dimension) for name, dimension in DIMENSIONS.items()],
        CLUSTERS,
        first_rows=ROWS,
        max_iterations=10,
    )
    declared = tuple(DeclaredView(name, dimension) for name, dimension in DIMENSIONS.items())
    return settings(params=selector, views=declared, chunk_records=ROWS, **changes)


def drifting_records(chunks: int) -> Iterator[bytes]:
    """Records of two clusters; each chunk separates them by other features, and more strongly."""
    rng = np.random.default_rng(0)
    for chunk in range(chunks):
        for _ in range(ROWS):
            group = int(rng.integers(CLUSTERS))
            yield encode_record(
                {name: _row(rng, dimension, chunk, group) for name, dimension in DIMENSIONS.items()}
            )


def _row(rng: np.random.Generator, dimension: int, chunk: int, group: int) -> Any:
    places = np.arange(dimension)
    active = places * 4 // dimension == chunk % 4
    return (rng.random(dimension) + active * group * 10.0 ** (chunk + 1)).astype(np.float32)


def drifting_process(chunks: int = 4, **changes: Any) -> tuple[MemoryBroker, SimulatedProcess]:
    """A process that has published every chunk."""
    made = broker()
    fill(made, list(drifting_records(chunks)))
    process = SimulatedProcess(made, drifting_settings(**changes))
    assert process.run(60)
    return made, process
