"""A data set made to order: as many rows as one likes, and features whose worth is known."""

import numpy as np

from stream_fs.evaluate.data import DataSet

CLUSTERS = 8
DIMENSIONS = (160, 80)
INFORMATIVE = 0.2
"""Share of the features that differ between clusters; the others are noise of the same size."""
DISTANCES = (0.3, 1.5)
"""Spread of the clusters' means in an informative feature, in units of the noise, by feature."""


def long_stream(rows: int, seed: int) -> DataSet:
    """Clusters of unequal size in two views, each with informative features first, then noise."""
    generator = np.random.default_rng(seed)
    sizes = generator.dirichlet([5.0] * CLUSTERS)
    labels = generator.choice(CLUSTERS, size=rows, p=sizes).astype(np.int64)
    views = []
    for d in DIMENSIONS:
        means = generator.normal(size=(CLUSTERS, d)) * generator.uniform(*DISTANCES, size=d)
        means[:, round(INFORMATIVE * d) :] = 0.0
        noise = generator.normal(size=(rows, d))
        views.append((means[labels] + noise).astype(np.float32))
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    return DataSet("synthetic", tuple(views), codes)
