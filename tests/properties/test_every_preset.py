"""Checks that hold for every preset, score and way to rank."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from stream_fs.selector import (
    Chunk,
    MultiViewSelector,
    Params,
    State,
    View,
    initial_state,
    params,
    rank,
    read_chunk,
    update,
)
from stream_fs.selector.merge.alignment import group_clusters
from stream_fs.selector.merge.combine import combine, merge
from stream_fs.selector.ranking import counts, split_budget, support, view_orders, view_scores
from stream_fs.selector.state import decay, flatten
from tests.support.planted_streams import Planted, planted_chunks
from tests.support.random_streams import dense, run, state_bytes

SETTINGS = [
    {"preset": preset, "score": score, "sketch": sketch}
    for preset, score, sketch in itertools.product(
        ["default", "paper", "classical"], ["relevance", "row_norm"], [0, 64]
    )
]
WORLD = Planted(seed=11, clusters=3, noise=10)
SIZES = [70, 30, 20]

every = pytest.mark.parametrize(
    "setting", SETTINGS, ids=lambda setting: "-".join(map(str, setting.values()))
)


def chosen_for(setting: dict[str, Any], **more: Any) -> Params:
    return params(WORLD.views, WORLD.clusters, **setting, **{"max_iterations": 15, **more})


def whole(params: Params, name: str = "none") -> Params:
    """The same with another transform for every view."""
    transform: Any = name
    return replace(params, views=tuple(replace(view, transform=transform) for view in params.views))


def bytes_of(chunk: Chunk) -> list[bytes]:
    return [
        array.tobytes()
        for part in chunk.views.values()
        for array in (dense(part.rows), part.present)
    ]


@every
def test_a_ranking_has_every_feature_once_and_finite_scores(setting: dict[str, Any]) -> None:
    chosen = chosen_for(setting)
    state, reports = run(chosen, planted_chunks(WORLD, chosen, SIZES))
    assert (state.alpha > 0).all()
    assert state.alpha.sum() == pytest.approx(1.0)
    ranking = rank(state)
    assert (ranking.preset, ranking.score) == (setting["preset"], setting["score"])
    assert (ranking.chunk, ranking.total) == (3, sum(SIZES))
    assert ranking.model == chosen.fingerprint
    for view, alpha in zip(ranking.views, state.alpha, strict=True):
        assert view.alpha == alpha == reports[-1].alpha[view.name]
        assert sorted(view.order.tolist()) == list(range(WORLD.dimension))
        assert np.isfinite(view.scores).all()
        assert (view.scores >= 0).all()
        assert view.scores.max() > 0
        assert view.scores[view.order[0]] == view.scores.max()
        assert view.top(3) == view.order[:3].tolist()
        assert ranking[view.name] is view
        if not setting["sketch"]:
            assert (np.diff(view.scores[view.order]) <= 0).all()
    with pytest.raises(KeyError):
        ranking["no such view"]


@every
@pytest.mark.parametrize("top", [0.1, 0.5, 1.0, 3, 10_000, {"view 0": 1, "view 1": 9}], ids=str)
def test_the_chosen_features_are_the_first_ones(setting: dict[str, Any], top: Any) -> None:
    chosen = chosen_for(setting)
    state, _ = run(chosen, planted_chunks(WORLD, chosen, SIZES[:1]))
    wanted = counts(state, top)
    if isinstance(top, float):
        assert list(wanted.values()) == split_budget([WORLD.dimension] * 2, top, chosen.budget)
    elif isinstance(top, int):
        assert set(wanted.values()) == {min(top, WORLD.dimension)}
    else:
        assert wanted == top
    orders = view_orders(state, view_scores(state))
    for name, mask in support(state, top).items():
        assert mask.sum() == wanted[name]
        assert set(np.flatnonzero(mask)) == set(orders[name][: wanted[name]])


@every
def test_transform_gives_the_chosen_columns(setting: dict[str, Any]) -> None:
    rng = np.random.default_rng(2)
    views = [View("dense", 7), View("sparse", 9), View("left out", 3)]
    model = MultiViewSelector(views, 2, first_rows=1, **setting)
    data: dict[str, Any] = {view.name: rng.random((30, view.dimension)) for view in views}
    data["dense"][3] = np.nan
    data["sparse"] = scipy.sparse.csr_array(data["sparse"])
    model.partial_fit(data)
    del data["left out"]
    result = model.transform(data, 0.4)
    chosen = model.get_support(0.4)
    assert result.keys() == {"dense", "sparse"}
    np.testing.assert_array_equal(result["dense"], data["dense"][:, chosen["dense"]])
    assert np.isnan(result["dense"][3]).all()
    assert scipy.sparse.issparse(result["sparse"])
    np.testing.assert_array_equal(
        dense(result["sparse"]), dense(data["sparse"])[:, chosen["sparse"]]
    )
    orders = model.get_order()
    ranking = model.ranking()
    for name, mask in chosen.items():
        assert set(orders[name][: mask.sum()]) == set(np.flatnonzero(mask))
        np.testing.assert_array_equal(ranking[name].order, orders[name])
        np.testing.assert_array_equal(ranking[name].scores, model.scores()[name])


@every
@pytest.mark.parametrize("transform", ["minmax", "unit", "none"])
def test_an_update_does_not_change_its_input(setting: dict[str, Any], transform: str) -> None:
    chosen = whole(chosen_for(setting, decay=0.9), transform)
    chunks = list(planted_chunks(WORLD, chosen, SIZES))
    state, _ = run(chosen, chunks[:1])
    before, given = state_bytes(state), bytes_of(chunks[1])
    after, _ = update(state, chunks[1])
    rank(state)
    assert state_bytes(state) == before
    assert bytes_of(chunks[1]) == given
    assert state_bytes(after) != before


@every
def test_the_report_has_the_figures_of_the_update(setting: dict[str, Any]) -> None:
    chosen = chosen_for(setting, min_iterations=4, max_iterations=9)
    chunks = list(planted_chunks(WORLD, chosen, SIZES))
    for number, (chunk, report) in enumerate(zip(chunks, run(chosen, chunks)[1], strict=True), 1):
        assert (report.chunk, report.rows) == (number, chunk.size)
        assert report.iterations == len(report.objective)
        assert 4 <= report.iterations <= 9
        if not report.converged:
            assert report.iterations == 9
        else:
            before, last = report.objective[-2:]
            assert abs(last - before) <= chosen.tolerance * before
        for name, part in chunk.views.items():
            assert report.missing[name] == pytest.approx(1 - part.present.mean())
            assert 0 < report.loss[name] < 1
            assert report.orthogonality[name] >= 0
        assert report.alpha.keys() == {"view 0", "view 1"}


def test_the_iterations_stop_where_the_objective_settles() -> None:
    chosen = chosen_for(SETTINGS[0], min_iterations=2, max_iterations=500, tolerance=1e-3)
    _, (report,) = run(chosen, planted_chunks(WORLD, chosen, SIZES[:1]))
    objective = np.array(report.objective)
    changes = abs(np.diff(objective)) / abs(objective[:-1])
    assert report.converged
    assert changes[-1] <= 1e-3
    assert (changes[:-1] > 1e-3).all()


@every
def test_merging_with_nothing_changes_nothing(setting: dict[str, Any]) -> None:
    chosen = chosen_for(setting)
    state, _ = run(chosen, planted_chunks(WORLD, chosen, SIZES))
    assert state_bytes(merge([state])) == state_bytes(state)
    assert state_bytes(merge([state, initial_state(chosen)])) == state_bytes(state)
    blank = initial_state(chosen)
    assert state_bytes(merge([blank, blank])) == state_bytes(blank)


@every
@pytest.mark.parametrize("transform", ["unit", "none"])
def test_merged_halves_hold_the_sums_of_both(setting: dict[str, Any], transform: str) -> None:
    chosen = whole(chosen_for(setting), transform)
    chunks = list(planted_chunks(WORLD, chosen, [60, 40, 50, 30]))
    (one, _), (two, _) = run(chosen, chunks[:2]), run(chosen, chunks[2:])
    both = merge([one, two])
    assert (both.j, both.total, both.chunk) == (180.0, 180, 4)
    assert both.alpha.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(both.alpha, (100 * one.alpha + 80 * two.alpha) / 180)
    groups = group_clusters([one, two])
    parts = [combine([model], [group]) for model, group in zip([one, two], groups, strict=True)]
    first, second, merged = (flatten(state)[1] for state in (*parts, both))
    for name, array in merged.items():
        if name == "alpha" or name.endswith(".V"):
            continue
        np.testing.assert_allclose(array, first[name] + second[name], err_msg=name)
    whole_stream, _ = run(chosen, chunks)
    for name, view in both.views.items():
        for summed in ("R", "Q"):
            of_parts = [getattr(model.views[name], summed).sum() for model in (one, two)]
            assert getattr(view, summed).sum() == pytest.approx(sum(of_parts))
        # What does not depend on the consensus is what one model over both would hold.
        straight = whole_stream.views[name]
        np.testing.assert_allclose(view.sum, straight.sum)
        assert view.n == straight.n
        if view.moments is not None and straight.moments is not None:
            np.testing.assert_allclose(view.moments.q, straight.moments.q)
            np.testing.assert_allclose(view.moments.C.sum(), straight.moments.C.sum())


@every
def test_merged_ranges_cover_both(setting: dict[str, Any]) -> None:
    chosen = whole(chosen_for(setting), "minmax")
    chunks = list(planted_chunks(WORLD, chosen, [60, 60]))
    parts = [run(chosen, [chunk])[0] for chunk in chunks]
    both, straight = merge(parts), run(chosen, chunks)[0]
    for name, view in both.views.items():
        expected = straight.views[name].range
        assert view.range is not None
        assert expected is not None
        np.testing.assert_array_equal(view.range.lo, expected.lo)
        np.testing.assert_array_equal(view.range.hi, expected.hi)


def without(chunk: Chunk, name: str) -> Chunk:
    """The rows that have another view, without this one."""
    present = np.logical_or.reduce(
        [part.present for other, part in chunk.views.items() if other != name]
    )
    views = {
        other: replace(part, present=part.present[present])
        for other, part in chunk.views.items()
        if other != name
    }
    return Chunk(int(present.sum()), views)


@every
def test_a_view_without_any_row_is_excluded(setting: dict[str, Any]) -> None:
    chosen = chosen_for(setting)
    chunks = [without(chunk, "view 1") for chunk in planted_chunks(WORLD, chosen, SIZES)]
    state, reports = run(chosen, chunks)
    alone = params(WORLD.views[:1], WORLD.clusters, **setting, max_iterations=15)
    single, _ = run(alone, chunks)
    assert state.alpha.tolist() == [1.0, 0.0]
    for name, array in flatten(single)[1].items():
        if name != "alpha":
            np.testing.assert_array_equal(flatten(state)[1][name], array)
    assert state.views["view 1"].n == 0
    assert not state.views["view 1"].V.any()
    assert not view_scores(state)["view 1"].any()
    assert rank(state)["view 1"].order.tolist() == list(range(WORLD.dimension))
    assert reports[-1].missing["view 1"] == 1.0
    assert reports[-1].loss.keys() == {"view 0"}


@every
@pytest.mark.parametrize("rho", [1.0, 0.8])
def test_an_absent_view_keeps_its_state(setting: dict[str, Any], rho: float) -> None:
    chosen = chosen_for(setting, absent_view="skip", decay=rho)
    chunks = list(planted_chunks(WORLD, chosen, SIZES))
    before, _ = run(chosen, chunks[:2])
    after, report = update(before, without(chunks[2], "view 1"))
    old, new = flatten(decay(before))[1], flatten(after)[1]
    for name, array in new.items():
        if name.startswith("1."):
            np.testing.assert_array_equal(array, old[name], err_msg=name)
    assert after.alpha[1] == before.alpha[1]
    assert after.alpha.sum() == pytest.approx(1.0)
    assert report.missing["view 1"] == 1.0
    assert report.loss.keys() == {"view 0"}
    scores, earlier = view_scores(after)["view 1"], view_scores(before)["view 1"]
    np.testing.assert_allclose(scores, earlier, rtol=1e-9)


@every
def test_an_absent_view_can_be_imputed(setting: dict[str, Any]) -> None:
    chosen = chosen_for(setting, absent_view="impute")
    chunks = list(planted_chunks(WORLD, chosen, SIZES))
    before, _ = run(chosen, chunks[:2])
    after, report = update(before, without(chunks[2], "view 1"))
    old, new = before.views["view 1"], after.views["view 1"]
    assert new.n == old.n
    np.testing.assert_array_equal(new.sum, old.sum)
    assert report.loss.keys() == {"view 0", "view 1"}
    mean = float(np.vdot(old.sum, old.sum)) / old.n**2
    arrived = before.total + 1.0 + np.arange(report.rows)
    expected = 0.0
    if setting["preset"] != "classical":
        expected = mean * float(((old.n / arrived) ** 2).sum())
        assert not np.array_equal(new.V, old.V)
    assert new.energy - old.energy == pytest.approx(expected, rel=1e-6, abs=1e-9)
    # The score's statistics are over present rows only.
    if old.moments is not None and new.moments is not None:
        np.testing.assert_array_equal(new.moments.Z, old.moments.Z)


@every
def test_a_late_view_takes_its_weight_from_all_views(setting: dict[str, Any]) -> None:
    """With the weights held where they start: view 1 enters with half, then both go on."""
    chosen = chosen_for(setting, lam=1e9)
    chunks = list(planted_chunks(WORLD, chosen, SIZES))
    before, _ = run(chosen, [without(chunks[0], "view 1")])
    after, _ = update(before, chunks[1])
    np.testing.assert_allclose(after.alpha, 0.5, rtol=1e-6)


def test_weights_stay_with_the_views_that_hold_them() -> None:
    """Three views: two take part and share what they held; a new one enters with 1/known."""
    rng = np.random.default_rng(3)
    views = [View("a", 3), View("b", 4), View("c", 5)]
    state = initial_state(params(views, 2, absent_view="skip"))

    def feed(state: State, *names: str) -> State:
        inputs = {
            view.name: rng.random((20, view.dimension)) ** 3 for view in views if view.name in names
        }
        return update(state, read_chunk(state.params.views, inputs))[0]

    state = feed(state, "a", "b")
    a, b, c = state.alpha
    assert c == 0
    assert a + b == pytest.approx(1.0)
    state = feed(state, "a", "c")
    assert state.alpha[1] == pytest.approx(b * 2 / 3)
    assert state.alpha.sum() == pytest.approx(1.0)
    held = state.alpha[0] + state.alpha[1]
    state = feed(state, "a", "b")
    assert state.alpha[0] + state.alpha[1] == pytest.approx(held)


@every
def test_decay_weights_earlier_chunks(setting: dict[str, Any]) -> None:
    """ρ for sums, ρ² for squares of weights, √ρ for the sketch; ranges and V stay."""
    rho = 0.7
    chosen = whole(chosen_for(setting, decay=rho), "minmax")
    state, _ = run(chosen, planted_chunks(WORLD, chosen, SIZES))
    after = decay(state)
    assert after.j == pytest.approx(rho * state.j)
    assert (after.total, after.chunk) == (state.total, state.chunk)
    np.testing.assert_array_equal(after.alpha, state.alpha)
    power = {"C2": 2, "n2": 2, "Y": 0.5, "g": 0.5, "lo": 0, "hi": 0, "V": 0}
    old, new = flatten(state)[1], flatten(after)[1]
    for name, array in old.items():
        if name != "alpha":
            factor = rho ** power.get(name.rpartition(".")[2], 1)
            np.testing.assert_allclose(new[name], factor * array, err_msg=name)
    assert state_bytes(decay(initial_state(chosen))) == state_bytes(initial_state(chosen))


@every
def test_decay_comes_before_the_chunk_is_added(setting: dict[str, Any]) -> None:
    rho = 0.7
    chosen = whole(chosen_for(setting, decay=rho), "none")
    chunks = list(planted_chunks(WORLD, chosen, SIZES))
    state, _ = run(chosen, chunks)
    assert state.total == sum(SIZES)
    assert state.j == pytest.approx(rho**2 * SIZES[0] + rho * SIZES[1] + SIZES[2])
    for name, view in state.views.items():
        parts = [chunk.views[name] for chunk in chunks]
        weights = [rho**2, rho, 1.0]
        pairs = list(zip(weights, parts, strict=True))
        assert view.n == pytest.approx(sum(w * part.present.sum() for w, part in pairs))
        total = sum(w * np.asarray(part.rows.sum(axis=0)) for w, part in pairs)
        np.testing.assert_allclose(view.sum, total)
        if view.moments is not None:
            squares = sum(w * np.asarray((part.rows**2).sum(axis=0)) for w, part in pairs)
            np.testing.assert_allclose(view.moments.q, squares)
            assert view.moments.n2 == pytest.approx(
                sum(w**2 * part.present.sum() for w, part in pairs)
            )
            assert view.moments.C.sum() == pytest.approx(view.n)
