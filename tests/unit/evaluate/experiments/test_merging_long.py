"""The generated long stream, and the same measurement on it."""

import numpy as np

from stream_fs.evaluate.experiments import merging, merging_long
from stream_fs.evaluate.experiments.merging_long import (
    CLUSTERS,
    DIMENSIONS,
    INFORMATIVE,
    long_stream,
)
from stream_fs.evaluate.plan import Options
from stream_fs.evaluate.protocol import make_trial


def test_the_rows_are_those_of_the_experiment_merging_on_this_stream() -> None:
    (settings,) = merging_long.plan(Options(quick=True))
    settings = {**settings, "instances": 650}
    trial, labels = make_trial(long_stream(650, 0), 0, Options().missing)
    assert merging_long.measure(settings) == merging.measure(trial, labels, settings)


def test_the_long_stream_has_clusters_in_its_first_features_only() -> None:
    stream = long_stream(2000, 3)
    assert stream.classes == CLUSTERS
    assert [x.shape for x in stream.views] == [(2000, d) for d in DIMENSIONS]
    for x in stream.views:
        means = np.array([x[stream.labels == k].mean(axis=0) for k in range(CLUSTERS)])
        spread = means.std(axis=0)
        informative = round(INFORMATIVE * x.shape[1])
        assert np.median(spread[:informative]) > 3 * np.median(spread[informative:])
