"""The cost of merging on a generated stream that is longer than the data sets."""

from __future__ import annotations

import numpy as np

from stream_fs.evaluate.datasets import DataSet
from stream_fs.evaluate.experiments import merging
from stream_fs.evaluate.plan import Options, Row, Settings, SyntheticExperiment
from stream_fs.evaluate.protocol import make_trial

ROWS = 10_240
QUICK_ROWS = 1_280
CLUSTERS = 8
DIMENSIONS = (160, 80)
INFORMATIVE = 0.2
"""Share of the features that differ between clusters; the others are noise of the same size."""
DISTANCES = (0.3, 1.5)
"""Spread of the clusters' means in an informative feature, in units of the noise, by feature."""


def plan(options: Options) -> list[Settings]:
    """One per repetition, with even partitions."""
    rows = QUICK_ROWS if options.quick else ROWS
    repetitions = options.repetitions_up_to(merging.REPETITIONS)
    planned = merging.merging_settings(options, repetitions, merging.PARTITIONINGS[:1])
    return [{**settings, "instances": rows} for settings in planned]


def measure(settings: Settings) -> list[Row]:
    """The same rows as those of the experiment `merging`."""
    repetition = int(settings["repetition"])
    stream = long_stream(int(settings["instances"]), repetition)
    trial, labels = make_trial(stream, repetition, float(settings["missing"]))
    return merging.measure(trial, labels, settings)


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


EXPERIMENT = SyntheticExperiment(plan, measure)
