"""Merged models of parts of a stream find planted features like one model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stream_fs.selector import (
    Chunk,
    Params,
    State,
    View,
    initial_state,
    params,
    rank,
    read_chunk,
    update,
)
from stream_fs.selector.merge.combine import combine, merge
from stream_fs.selector.ranking import view_scores
from tests.support.planted_streams import Planted, area_under_curve, planted_chunks

SETTINGS: list[dict[str, Any]] = [{}, {"preset": "paper"}, {"score": "row_norm"}]
every = pytest.mark.parametrize("setting", SETTINGS, ids=str)


def world_for(setting: dict[str, Any], seed: int = 3) -> Planted:
    """Row norms follow a feature's mean, so for them noise must be small."""
    return Planted(seed=seed, noise_scale=0.1 if setting else 1.0)


def chosen_for(world: Planted, setting: dict[str, Any]) -> Params:
    views = [View(view.name, view.dimension, "unit" if setting else None) for view in world.views]
    return params(views, world.clusters, max_iterations=20, **setting)


def fitted(chosen: Params, origin: str, chunks: Sequence[Chunk]) -> State:
    state = initial_state(chosen, origin)
    for chunk in chunks:
        state, _ = update(state, chunk)
    return state


def models(world: Planted, chosen: Params, parts: int, chunks: int = 2) -> list[State]:
    """One model for each part of the stream."""
    stream = list(planted_chunks(world, chosen, [80] * (parts * chunks)))
    return [fitted(chosen, f"part {p}", stream[p::parts]) for p in range(parts)]


def assert_alike(
    left: State, right: State, tolerance: float = 1e-6, places: int | None = None
) -> None:
    """The same scores, and the same first places but for features whose scores are the same."""
    np.testing.assert_allclose(left.alpha, right.alpha)
    for ours, theirs in zip(rank(left).views, rank(right).views, strict=True):
        close = {"rtol": tolerance, "atol": tolerance * ours.scores.max()}
        np.testing.assert_allclose(theirs.scores, ours.scores, **close)
        np.testing.assert_allclose(
            ours.scores[theirs.order[:places]], ours.scores[ours.order[:places]], **close
        )


@every
@pytest.mark.parametrize("parts", [2, 5])
def test_merged_parts_find_what_one_model_finds(setting: dict[str, Any], parts: int) -> None:
    world = world_for(setting)
    chosen = chosen_for(world, setting)
    separate = models(world, chosen, parts)
    stream = list(planted_chunks(world, chosen, [80] * (parts * 2)))
    merged, single = view_scores(merge(separate)), view_scores(fitted(chosen, "", stream))
    for name, scores in merged.items():
        assert area_under_curve(single[name], world.is_noise) > 0.97
        assert area_under_curve(scores, world.is_noise) > 0.97
        informative = scores[~world.is_noise].mean()
        assert informative == pytest.approx(single[name][~world.is_noise].mean(), rel=0.25)


@every
def test_the_order_of_the_models_does_not_matter(setting: dict[str, Any]) -> None:
    world = world_for(setting)
    separate = models(world, chosen_for(world, setting), 4)
    merged = merge(separate)
    for order in ([3, 1, 0, 2], [1, 2, 3, 0]):
        assert_alike(merge([separate[p] for p in order]), merged)


@every
def test_a_model_merged_with_itself_ranks_as_before(setting: dict[str, Any]) -> None:
    world = world_for(setting)
    (model,) = models(world, chosen_for(world, setting), 1)
    alone = combine([model], [np.arange(world.clusters)])
    for copies in (2, 3):
        merged = merge([model] * copies)
        # With more data chance explains less, and V's penalty weighs less: that moves the scores a
        # little, and noise from zero.
        assert_alike(merged, alone, tolerance=0.02, places=world.informative)
        for ours, theirs in zip(rank(merged).views, rank(model).views, strict=True):
            top = ours.order[: world.informative], theirs.order[: world.informative]
            assert setting or np.array_equal(*top)
        assert merged.total == copies * model.total
        for name, view in merged.views.items():
            np.testing.assert_allclose(view.Q, copies * model.views[name].Q)
            np.testing.assert_allclose(view.R, copies * model.views[name].R)


@every
def test_the_numbers_of_a_models_clusters_do_not_matter(setting: dict[str, Any]) -> None:
    world = world_for(setting)
    separate = models(world, chosen_for(world, setting), 3)
    turned = [combine([m], [np.roll(np.arange(4), p)]) for p, m in enumerate(separate)]
    assert_alike(merge(turned), merge(separate))


def rows(
    rng: np.random.Generator, size: int, clusters: Sequence[int], high: Sequence[int]
) -> NDArray[np.float64]:
    """Ten features; in the k-th cluster of four, `high[k]` is raised."""
    values = rng.random((size, 10))
    cluster = rng.choice(clusters, size)
    values[np.arange(size), np.asarray(high)[cluster]] += 2.0
    return values


def decode_model(matrix: NDArray[np.float64], origin: str) -> State:
    chosen = params([View("v", 10)], 4)
    return fitted(chosen, origin, [read_chunk(chosen.views, {"v": matrix})])


@pytest.mark.parametrize("larger", [0, 1])
def test_models_are_weighted_by_their_data(larger: int) -> None:
    """In one part features 0–3 distinguish clusters, in the other 4–7."""
    rng = np.random.default_rng(2)
    sizes = [900, 100] if larger == 0 else [100, 900]
    matrices = [
        rows(rng, size, range(4), high)
        for size, high in zip(sizes, [(0, 1, 2, 3), (4, 5, 6, 7)], strict=True)
    ]
    parts = [decode_model(matrix, f"part {p}") for p, matrix in enumerate(matrices)]
    merged = merge(parts)
    scores = view_scores(merged)["v"]
    halves = [scores[:4].mean(), scores[4:8].mean()]
    assert halves[larger] > 2 * halves[1 - larger]
    assert scores[8:].max() < 0.05
    assert merged.views["v"].n == merged.j == merged.total == 1000


def test_clusters_missing_from_a_part_stay_separate() -> None:
    """The first part lacks cluster 3, the second cluster 0; each has split another instead."""
    rng = np.random.default_rng(5)
    high = (0, 1, 2, 3)
    parts = [decode_model(rows(rng, 300, seen, high), str(seen)) for seen in ((0, 1, 2), (1, 2, 3))]
    merged = merge(parts)
    scores = view_scores(merged)["v"]
    assert scores[:4].min() > 0.5
    assert scores[4:].max() < 0.1
    moments = merged.views["v"].moments
    assert moments is not None
    # Every cluster has the feature of its own, and the mass of the parts that have seen it.
    feature = (moments.Z / moments.C)[:4].argmax(axis=0)
    assert sorted(feature) == [0, 1, 2, 3]
    own = dict(zip(feature.tolist(), moments.C, strict=True))
    for cluster, mass in enumerate([100, 200, 200, 100]):
        assert own[cluster] == pytest.approx(mass, rel=0.35)


def test_parts_of_one_cluster_each_make_the_clusters_of_the_stream() -> None:
    """Keys that follow the clusters: no part alone knows which features matter.

    Nor does any know the range of a feature in the other clusters.
    """
    rng = np.random.default_rng(8)
    parts = [decode_model(rows(rng, 200, (k,), (0, 1, 2, 3)), f"part {k}") for k in range(4)]
    alone = [view_scores(part)["v"] for part in parts]
    assert max(scores[4:].mean() / scores[:4].mean() for scores in alone) > 0.5
    scores = view_scores(merge(parts))["v"]
    assert scores[:4].min() > 0.8
    assert scores[4:].max() < 0.1


def test_random_differences_of_ranges_do_not_separate_the_models() -> None:
    """Many features with long tails: each part's smallest and largest values are its own."""
    rng = np.random.default_rng(4)
    K, d, parts = 4, 120, 6
    centres = np.zeros((K, d))
    centres[:, :16] = 0.8 * rng.normal(size=(K, 16))
    chosen = params([View("v", d)], K, max_iterations=10)
    models = []
    for part in range(parts):
        matrix = centres[rng.integers(K, size=200)] + rng.normal(size=(200, d))
        chunk = read_chunk(chosen.views, {"v": matrix})
        models.append(fitted(chosen, f"part {part}", [chunk]))
    noise = np.arange(d) >= 16
    assert area_under_curve(view_scores(merge(models))["v"], noise) > 0.95


def test_a_part_of_equal_records_changes_nothing() -> None:
    """It has no range, so that all its scaled rows are zero: they mean a place, not nothing."""
    rng = np.random.default_rng(9)
    chosen = params([View("v", 12)], 2)
    equal = np.tile(np.r_[1.0, np.full(11, 0.5)], (200, 1))
    varied = rng.random((200, 12))
    varied[:100, 0] += 2
    models = [
        fitted(chosen, name, [read_chunk(chosen.views, {"v": matrix})])
        for name, matrix in {"equal": equal, "varied": varied}.items()
    ]
    with np.errstate(all="raise"):
        scores = view_scores(merge(models))["v"]
    assert scores[0] > 3 * scores[1:].max()
