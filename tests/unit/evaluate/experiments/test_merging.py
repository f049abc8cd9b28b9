"""Partitions of a stream, merging of their models, and comparison of the selections."""

from dataclasses import replace

import numpy as np
import pytest

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.experiments import merging
from stream_fs.evaluate.experiments.merging import (
    MergingComparison,
    average_scores,
    divide,
    fit_model,
    merge_matched,
)
from stream_fs.evaluate.experiments.merging_long import CLUSTERS, DIMENSIONS, long_stream
from stream_fs.evaluate.plan import DataSetEntry, Options
from stream_fs.evaluate.protocol import Trial, make_trial
from stream_fs.selector.merge.combine import combine
from stream_fs.selector.ranking import view_scores
from tests.support.planted_views import planted_views


def planted(size: int = 40) -> tuple[Trial, Labels]:
    data, labels = planted_views(size=size, missing=0.2)
    return Trial(data, 4, 0), labels


def test_a_small_stream_from_start_to_rows() -> None:
    comparison = MergingComparison(
        *planted(), partitions=(2, 4), min_rows=20, methods=("merged", "averaged")
    )
    rows = list(comparison.rows())
    # 160 rows of 4 clusters: four partitions would have 40 rows each, 10 per cluster.
    assert [(row["partitions"], row["rows"], row["method"]) for row in rows] == [
        (1, 160, "single"),
        (1, 160, "again"),
        (2, 80, "merged"),
        (2, 80, "averaged"),
    ]
    assert rows[0]["overlap"] == 1.0
    assert float(rows[2]["overlap"]) > 0.5
    for judge in ("gimc raw", "gimc scaled", "spectral raw", "spectral scaled"):
        assert float(rows[2][f"nmi {judge}"]) > 0.8


@pytest.mark.parametrize("partitioning", merging.PARTITIONINGS)
def test_every_row_is_in_one_partition(partitioning: merging.Partitioning) -> None:
    trial, labels = planted(size=200)
    parts = divide(trial, labels, 3, partitioning)
    assert sorted(np.concatenate(parts).tolist()) == list(range(800))
    shares = np.array([np.bincount(labels[part], minlength=4) / len(part) for part in parts])
    assert (shares.std(axis=0).max() > 0.15) == (partitioning == "keyed")


def test_matching_finds_the_clusters_of_a_model_whose_numbers_changed() -> None:
    trial, _ = planted()
    model = fit_model(trial, np.arange(160), "one")
    order = np.array([2, 0, 3, 1])
    permuted = replace(combine([model], [order]), total=100)
    both = merge_matched([permuted, model])
    for name, view in both.views.items():
        before = model.views[name].moments
        assert before is not None
        assert view.moments is not None
        np.testing.assert_allclose(view.moments.Z, 2 * before.Z)


def test_averages_weigh_by_rows() -> None:
    trial, _ = planted()
    small, large = fit_model(trial, np.arange(40), "s"), fit_model(trial, np.arange(40, 160), "l")
    name = "view_0"
    weights = np.array([small.views[name].n, large.views[name].n])
    expected = weights @ [view_scores(m)[name] for m in (small, large)] / weights.sum()
    np.testing.assert_allclose(average_scores([small, large])[name], expected)


def test_the_experiment_measures_every_merging_method() -> None:
    dataset = long_stream(1300, 0)
    entry = DataSetEntry("made", "held-out", dataset.instances, DIMENSIONS, CLUSTERS, "abc")
    assert {settings["cut"] for settings in merging.plan(Options(), entry)} == {"even", "keyed"}
    (settings,) = merging.plan(Options(quick=True), entry)
    rows = merging.measure(*make_trial(dataset, 0, Options().missing), settings)
    assert [(row["partitions"], row["method"]) for row in rows] == [
        (1, "single"),
        (1, "again"),
        *((p, method) for p in (2, 4) for method in ("merged", "matched", "averaged")),
    ]
    assert rows[0]["overlap"] == 1
    few = replace(entry, instances=2 * 40 * CLUSTERS - 1)
    assert merging.plan(Options(), few) == []
