"""The work on a chunk with stream_fs as a library: what every peer but the service itself calls."""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from typing import Any, Final

import msgpack
import numpy as np
import orjson

from stream_fs.selector import (
    Chunk,
    Ranking,
    State,
    View,
    initial_state,
    params,
    rank,
    read_chunk,
    update,
)
from tests.benchmarks.peers.job import Job

VIEWS: Final = ("a", "b")
PART_BYTES: Final = 900_000
"""Below the largest message that a broker takes."""


class Selection:
    """The model; `sequence` counts its chunks."""

    def __init__(self, job: Job) -> None:
        self._views = [View(name, job.dimension) for name in VIEWS]
        self._state = initial_state(params(self._views, **job.selector), job.origin)

    @property
    def sequence(self) -> int:
        return self._state.chunk

    def fold(self, values: Sequence[bytes]) -> bytes:
        """The ranking after these records."""
        self._state, _ = update(self._state, decoded(self._views, values))
        return document(rank(self._state))

    @property
    def state(self) -> State:
        """Immutable."""
        return self._state

    @state.setter
    def state(self, state: State) -> None:
        self._state = state

    def saved(self) -> list[bytes]:
        """The model, in parts that fit into a message."""
        whole = pickle.dumps(self._state, protocol=5)
        return [whole[at : at + PART_BYTES] for at in range(0, len(whole), PART_BYTES)]

    def restore(self, parts: Sequence[bytes]) -> None:
        self._state = pickle.loads(b"".join(parts))


def decoded(views: Sequence[View], values: Sequence[bytes]) -> Chunk:
    """Packed records as matrices: for each view one array over all its rows, joined first."""
    rows = [msgpack.unpackb(value)["views"] for value in values]
    matrices, present = {}, {}
    for view in views:
        packed = [row.get(view.name) for row in rows]
        there = np.array([floats is not None for floats in packed])
        joined = b"".join([floats for floats in packed if floats is not None])
        matrix = np.zeros((len(rows), view.dimension), np.float32)
        matrix[there] = np.frombuffer(joined, "<f4").reshape(-1, view.dimension)
        matrices[view.name], present[view.name] = matrix, there
    return read_chunk(views, matrices, present)


def document(ranking: Ranking) -> bytes:
    """The heart of what the service publishes: sequence, weights, features with relevance."""
    views = []
    for view in ranking.views:
        relevance: list[Any] = view.scores[view.order].tolist()
        features = [
            {"index": index, "relevance": score}
            for index, score in zip(view.order.tolist(), relevance, strict=True)
        ]
        views.append({"name": view.name, "weight": view.alpha, "features": features})
    return orjson.dumps({"sequence": ranking.chunk, "total": ranking.total, "views": views})
