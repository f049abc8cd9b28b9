"""What merging costs: partitions cut, models merged, selections compared."""

from dataclasses import replace

import numpy as np
import pytest

from stream_fs.evaluate.builtin_datasets import CLUSTERS, DIMENSIONS, INFORMATIVE, long_stream
from stream_fs.evaluate.experiments import merging
from stream_fs.evaluate.experiments.merging import (
    MergingSettings,
    Stream,
    averaged,
    cut,
    fit,
    matched,
    measure_merging,
    shared,
)
from stream_fs.evaluate.plan import Entry, Options, Row
from stream_fs.evaluate.protocol import Problem, make_problem
from stream_fs.evaluate.report.cost import merging_table
from stream_fs.selector.merge.combine import combine
from stream_fs.selector.ranking import view_scores
from tests.unit.evaluate.planted import planted_views


def planted(size: int = 40) -> Stream:
    data, labels = planted_views(size=size, missing=0.2)
    return Stream(Problem(data, 4, 0), labels)


def test_a_small_stream_from_start_to_rows() -> None:
    settings = MergingSettings(partitions=(1, 2, 4), least_rows=20, methods=("merged", "averaged"))
    rows = list(measure_merging(planted(), settings))
    # 160 rows of 4 clusters: four partitions would have 40 rows each, 10 per cluster.
    assert [(r.partitions, r.rows, r.method) for r in rows] == [
        (1, 160, "single"),
        (1, 160, "again"),
        (2, 80, "merged"),
        (2, 80, "averaged"),
    ]
    assert rows[0].overlap == 1.0
    assert rows[2].overlap > 0.5
    for judge in ("gimc raw", "gimc scaled", "spectral raw", "spectral scaled"):
        assert rows[2].nmi[judge] > 0.8


@pytest.mark.parametrize("how", ["even", "keyed"])
def test_every_row_goes_to_one_partition(how: str) -> None:
    settings = MergingSettings(cut="even" if how == "even" else "keyed")
    stream = planted(size=200)
    parts = cut(stream, 3, settings)
    assert sorted(np.concatenate(parts).tolist()) == list(range(800))
    shares = np.array([np.bincount(stream.labels[at], minlength=4) / len(at) for at in parts])
    assert (shares.std(axis=0).max() > 0.15) == (how == "keyed")


def test_overlap_is_the_share_that_both_have() -> None:
    one = [np.array([True, True, False, False]), np.array([True, False])]
    other = [np.array([True, False, True, False]), np.array([True, False])]
    assert shared(one, other) == pytest.approx(2 / 3)


def test_matching_finds_the_clusters_of_a_model_whose_numbers_changed() -> None:
    stream = planted()
    model = fit(stream, np.arange(160), "one")
    order = np.array([2, 0, 3, 1])
    turned = replace(combine([model], [order]), total=100)
    both = matched([turned, model])
    for name, view in both.views.items():
        before = model.views[name].moments
        assert before is not None
        assert view.moments is not None
        np.testing.assert_allclose(view.moments.Z, 2 * before.Z)


def test_averages_weigh_by_rows() -> None:
    stream = planted()
    small, large = fit(stream, np.arange(40), "s"), fit(stream, np.arange(40, 160), "l")
    name = "view_0"
    weights = np.array([small.views[name].n, large.views[name].n])
    expected = weights @ [view_scores(m)[name] for m in (small, large)] / weights.sum()
    np.testing.assert_allclose(averaged([small, large])[name], expected)


def test_the_table_pairs_changes_by_repetition() -> None:
    def row(method: str, repetition: int, nmi: float, partitions: int) -> Row:
        named: Row = {"dataset": "set", "cut": "even", "repetition": repetition, "rows": 100}
        return {**named, "partitions": partitions, "method": method, "overlap": 0.5, "nmi": nmi}

    rows = [row("single", 0, 0.5, 1), row("single", 1, 0.7, 1)]
    rows += [row("merged", 0, 0.4, 2), row("merged", 1, 0.8, 2)]
    (table,) = merging_table(rows)
    last = ["set", "even", "2", "100", "merged", "0.500 ± 0.000", "0.600", "+0.000 ± 0.100"]
    assert table.rows[-1] == last
    assert len(table.figures) == 2


def test_the_experiment_measures_every_way_to_merge() -> None:
    dataset = long_stream(1300, 0)
    entry = Entry("made", "held-out", dataset.instances, DIMENSIONS, CLUSTERS, "abc")
    assert {of["cut"] for of in merging.plan(Options(), entry)} == {"even", "keyed"}
    (settings,) = merging.plan(Options(quick=True), entry)
    rows = merging.measure(*make_problem(dataset, 0, Options().missing), settings)
    assert [(row["partitions"], row["method"]) for row in rows] == [
        (1, "single"),
        (1, "again"),
        *((p, way) for p in (2, 4) for way in ("merged", "matched", "averaged")),
    ]
    assert rows[0]["overlap"] == 1
    few = replace(entry, instances=2 * 40 * CLUSTERS - 1)
    assert merging.plan(Options(), few) == []
    (long,) = merging.plan_long(Options(quick=True))
    assert merging.measure_long({**long, "instances": 1300}) == rows


def test_the_long_stream_has_clusters_in_its_first_features_only() -> None:
    made = long_stream(2000, 3)
    assert made.classes == CLUSTERS
    assert [x.shape for x in made.views] == [(2000, d) for d in DIMENSIONS]
    for x in made.views:
        means = np.array([x[made.labels == k].mean(axis=0) for k in range(CLUSTERS)])
        spread = means.std(axis=0)
        informative = round(INFORMATIVE * x.shape[1])
        assert np.median(spread[:informative]) > 3 * np.median(spread[informative:])
