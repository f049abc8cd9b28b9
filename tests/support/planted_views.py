"""Incomplete views with clusters that only some features show."""

import numpy as np

from stream_fs.evaluate.datasets import IncompleteViews, Labels
from stream_fs.evaluate.protocol import remove_views


def planted_views(
    *,
    clusters: int = 4,
    size: int = 40,
    informative: int = 12,
    noise: int = 12,
    missing: float = 0.5,
) -> tuple[IncompleteViews, Labels]:
    """Three views; the first features are each raised in one cluster, the rest are noise."""
    generator = np.random.default_rng(0)
    labels = generator.permutation(np.repeat(np.arange(clusters), size))
    views = []
    for _ in range(3):
        x = generator.random((len(labels), informative + noise))
        for feature in range(informative):
            x[labels == feature % clusters, feature] += 2
        views.append(x)
    present = remove_views(len(labels), 3, missing, generator)
    for v, x in enumerate(views):
        x[~present[:, v]] = np.nan  # must never be read
    return IncompleteViews(tuple(views), present), labels
