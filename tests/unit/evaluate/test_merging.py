"""What merging costs: partitions cut, models merged, selections compared."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from stream_fs.evaluate.long_stream import CLUSTERS, DIMENSIONS, INFORMATIVE, long_stream
from stream_fs.evaluate.merging import (
    MergingRow,
    MergingSettings,
    Stream,
    cut,
    fit,
    measure_merging,
    shared,
)
from stream_fs.evaluate.merging_figures import plot, table
from stream_fs.evaluate.merging_rivals import averaged, matched
from stream_fs.selector.merge import combine
from stream_fs.selector.model import view_scores
from tests.unit.evaluate.planted import planted_views


def planted(size: int = 40) -> Stream:
    data, labels = planted_views(size=size, missing=0.2)
    return Stream("planted", data, labels, 4, 0)


def row(method: str, seed: int, nmi: float, partitions: int = 2) -> MergingRow:
    return MergingRow("set", seed, "even", partitions, 100, method, 0.5, {"a": nmi, "b": nmi})


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


def test_the_table_pairs_changes_by_seed() -> None:
    rows = [row("single", 0, 0.5, 1), row("single", 1, 0.7, 1)]
    rows += [row("merged", 0, 0.4), row("merged", 1, 0.8)]
    last = [cell.strip() for cell in table(rows).splitlines()[-1].strip("|").split("|")]
    assert last == ["set", "even", "2", "100", "merged", "0.500", *["0.600"] * 3, "+0.000 ± 0.100"]


def test_the_plot_is_an_image(tmp_path: Path) -> None:
    rows = [row("single", 0, 0.5, 1), row("again", 0, 0.5, 1), row("merged", 0, 0.4)]
    plot(rows, tmp_path / "merging.png")
    assert (tmp_path / "merging.png").read_bytes().startswith(b"\x89PNG")


def test_the_long_stream_has_clusters_in_its_first_features_only() -> None:
    made = long_stream(2000, 3)
    assert made.classes == CLUSTERS
    assert [x.shape for x in made.views] == [(2000, d) for d in DIMENSIONS]
    for x in made.views:
        means = np.array([x[made.labels == k].mean(axis=0) for k in range(CLUSTERS)])
        spread = means.std(axis=0)
        informative = round(INFORMATIVE * x.shape[1])
        assert np.median(spread[:informative]) > 3 * np.median(spread[informative:])
