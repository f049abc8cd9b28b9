"""Streams with a known answer: clusters, the features that distinguish them, noise, and copies."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from stream_fs.selector import Chunk, Params, View, read_chunk
from tests.support.random_streams import presence


@dataclass(frozen=True)
class Planted:
    """Every view: `clusters`·`per_cluster` features that are high in one cluster (block V), then
    as many copies of the first of them as `copies`, then `noise` features without information.

    With `noise_scale` 1 noise is on the scale of the informative features, so that its size does
    not give it away.
    """

    seed: int
    clusters: int = 4
    views_count: int = 2
    per_cluster: int = 2
    copies: int = 3
    noise: int = 25
    missing: float = 0.3
    noise_scale: float = 1.0

    @property
    def informative(self) -> int:
        return self.clusters * self.per_cluster

    @property
    def dimension(self) -> int:
        return self.informative + self.copies + self.noise

    @property
    def views(self) -> list[View]:
        return [View(f"view {v}", self.dimension) for v in range(self.views_count)]

    @property
    def is_noise(self) -> NDArray[np.bool_]:
        return np.arange(self.dimension) >= self.informative + self.copies


def planted_rows(world: Planted, rng: np.random.Generator, size: int) -> list[NDArray[np.float64]]:
    """One matrix per view, nothing missing; values are non-negative."""
    clusters = rng.integers(world.clusters, size=size)
    matrices = []
    for _ in range(world.views_count):
        high = np.eye(world.clusters)[clusters].repeat(world.per_cluster, axis=1)
        level = high + 0.6 * rng.random(high.shape)
        noise = rng.random((size, world.noise)) * rng.choice([0.8, 1.6], size=world.noise)
        matrices.append(np.hstack([level, level[:, : world.copies], world.noise_scale * noise]))
    return matrices


def planted_chunks(world: Planted, params: Params, sizes: Sequence[int]) -> Iterator[Chunk]:
    rng = np.random.default_rng(world.seed)
    for size in sizes:
        matrices = planted_rows(world, rng, size)
        masks = presence(rng, world.views_count, size, world.missing)
        names = [view.name for view in world.views]
        yield read_chunk(
            params.views,
            dict(zip(names, matrices, strict=True)),
            dict(zip(names, masks, strict=True)),
        )


def area_under_curve(scores: NDArray[np.float64], noise: NDArray[np.bool_]) -> float:
    """Chance that an informative feature scores above a noise feature."""
    above = scores[~noise][:, None] - scores[noise]
    return float(np.mean((above > 0) + 0.5 * (above == 0)))
