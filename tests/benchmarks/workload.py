"""Streams to measure with: planted clusters, rows that lack views, dense or CSR, single precision.

Every instance keeps at least one view, and every view is missing from the same share of instances,
which can be 1 − 1/views at most.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from stream_fs.selector import Chunk, State, View, initial_state, params, read_chunk, update

Mask = NDArray[np.bool_]
Single = NDArray[np.float32]

ACTIVE = 0.3
"""Share of a view's features that a cluster raises."""
NOISE = 0.3
"""Height of the uniform noise, relative to the largest cluster mean."""
WARM_UP = 3
"""Chunks that a model has seen before the one that is measured."""


@dataclass(frozen=True)
class Shape:
    """`rows` in a chunk, features in each of `views`; `density` makes the rows CSR."""

    dimension: int
    rows: int = 500
    clusters: int = 10
    views: int = 2
    missing: float = 0.5
    density: float | None = None

    def __str__(self) -> str:
        return f"N {self.rows}, d {self.views} × {self.dimension}, K {self.clusters}"

    @property
    def declared(self) -> list[View]:
        return [View(f"view {number}", self.dimension) for number in range(self.views)]


def stream(shape: Shape, seed: int = 0) -> Iterator[Chunk]:
    """Chunks without end, as `read_chunk` gives them."""
    rng = np.random.default_rng(seed)
    means = [cluster_means(shape, rng) for _ in range(shape.views)]
    while True:
        labels = rng.integers(shape.clusters, size=shape.rows)
        names = [view.name for view in shape.declared]
        inputs = [view_rows(shape, mean[labels], rng) for mean in means]
        masks = presence(shape, rng)
        yield read_chunk(
            shape.declared,
            dict(zip(names, inputs, strict=True)),
            dict(zip(names, masks, strict=True)),
        )


def cluster_means(shape: Shape, rng: np.random.Generator) -> Single:
    size = (shape.clusters, shape.dimension)
    return rng.random(size, np.float32) * (rng.random(size, np.float32) < ACTIVE)


def view_rows(shape: Shape, means: Single, rng: np.random.Generator) -> Any:
    if shape.density is None:
        return means + NOISE * rng.random(means.shape, np.float32)
    rows: Any = scipy.sparse.random_array(
        means.shape, density=shape.density, format="csr", dtype=np.float32, rng=rng
    )
    at = np.repeat(np.arange(shape.rows), np.diff(rows.indptr))
    rows.data *= means[at, rows.indices] + NOISE
    return rows


def presence(shape: Shape, rng: np.random.Generator) -> list[Mask]:
    """Which rows each view has: one view dealt to every row, then more at random."""
    if shape.missing > 1 - 1 / shape.views + 1e-9:
        raise ValueError(f"{shape.views} views cannot each lack {shape.missing:.0%} of the rows")
    count = round(shape.rows * (1 - shape.missing))
    dealt = rng.permutation(shape.rows)
    masks = []
    for number in range(shape.views):
        mask = np.zeros(shape.rows, bool)
        mask[dealt[number :: shape.views]] = True
        further = max(count - int(np.count_nonzero(mask)), 0)
        mask[rng.choice(np.flatnonzero(~mask), further, replace=False)] = True
        masks.append(mask)
    return masks


def warm_model(shape: Shape, chunks: int = WARM_UP, **overrides: Any) -> tuple[State, Chunk]:
    """A model that has seen some chunks, and the chunk that comes next."""
    source = stream(shape)
    state = initial_state(params(shape.declared, shape.clusters, **overrides))
    for _ in range(chunks):
        state, _ = update(state, next(source))
    return state, next(source)
