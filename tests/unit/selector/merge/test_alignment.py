"""Which clusters of several models are taken to be the same."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stream_fs.selector import State, View, initial_state, params
from stream_fs.selector.merge.alignment import group_clusters
from stream_fs.selector.state import Moments

Matrix = NDArray[np.float64]


def model(masses: Any, *views: Any) -> State:
    """A model that knows nothing but its clusters: their masses (K), and means (K×d) per view.

    Masses may differ between views (views × K). A view of None was not seen.
    """
    weights = np.broadcast_to(np.asarray(masses, float), (len(views), np.shape(masses)[-1]))
    dims = [2 if means is None else np.shape(means)[1] for means in views]
    declared = [View(f"v{v}", d, "none") for v, d in enumerate(dims)]
    state = initial_state(params(declared, weights.shape[1], sketch=0))
    filled = dict(state.views)
    for (name, blank), means, weight in zip(state.views.items(), views, weights, strict=True):
        if means is not None:
            Z = np.asarray(means, float).T * weight
            moments = Moments(weight, weight, Z, Z.sum(axis=1), float(weight.sum()))
            filled[name] = replace(blank, n=weight.sum(), sum=Z.sum(axis=1), moments=moments)
    return replace(state, views=filled, j=1.0, total=1, chunk=1)


def groups(*models: State) -> list[list[int]]:
    return [group.tolist() for group in group_clusters(models)]


def between(masses: Matrix, means: Matrix, members: list[list[int]]) -> float:
    """Σ over groups of mass·‖mean − overall mean‖², as it is defined."""
    overall = masses @ means / masses.sum()
    total = 0.0
    for group in members:
        mass = masses[group].sum()
        centre = masses[group] @ means[group] / mass
        total += float(mass * ((centre - overall) ** 2).sum())
    return total / float(masses.sum())


def joined_naively(masses: Matrix, views: list[Matrix], wanted: int) -> set[frozenset[int]]:
    """Ward's method by trying every pair at every step; masses (views × clusters)."""
    members = [[k] for k in range(masses.shape[1])]
    whole = [between(mass, means, members) for mass, means in zip(masses, views, strict=True)]

    def kept(tried: list[list[int]]) -> float:
        found = [between(mass, means, tried) for mass, means in zip(masses, views, strict=True)]
        return float(np.sum(np.divide(found, whole)))

    while len(members) > wanted:
        unions = []
        for a, b in itertools.combinations(range(len(members)), 2):
            rest = [group for k, group in enumerate(members) if k not in (a, b)]
            unions.append([*rest, members[a] + members[b]])
        members = max(unions, key=kept)
    return {frozenset(group) for group in members}


@pytest.mark.parametrize("seed", range(12))
def test_each_step_loses_least(seed: int) -> None:
    rng = np.random.default_rng(seed)
    K, count = 3, 4
    masses = rng.uniform(0, 1, (count, 2, K)) ** 4
    views = [[rng.normal(size=(K, d)) * 10**d for _ in range(count)] for d in (2, 3)]
    models = [model(masses[p], views[0][p], views[1][p]) for p in range(count)]
    found = np.concatenate(group_clusters(models))
    stacked = masses.transpose(1, 0, 2).reshape(2, -1)
    expected = joined_naively(stacked, [np.vstack(view) for view in views], K)
    assert {frozenset(np.flatnonzero(found == g).tolist()) for g in range(K)} == expected


def test_the_same_clusters_in_another_order_are_matched() -> None:
    means = np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0]])
    one, other = model([3, 4, 5], means), model([50, 30, 40], means[[2, 0, 1]] + 0.1)
    assert groups(one, other) == [[0, 1, 2], [2, 0, 1]]


def test_what_one_model_has_split_is_one_cluster_where_another_saw_more() -> None:
    """The second has never seen the first's cluster at 0, and has two where the first has one."""
    one = model([10, 10, 10], [[0.0], [5.0], [9.0]])
    other = model([10, 10, 10], [[4.9], [5.1], [9.0]])
    assert groups(one, other) == [[0, 1, 2], [1, 1, 2]]


def test_every_view_counts_alike() -> None:
    """The second view has larger numbers and says less: the first decides."""
    one = model([1, 1], [[0.0], [1.0]], [[1000.0], [1010.0]])
    other = model([1, 1], [[0.9], [0.0]], [[1004.0], [1006.0]])
    assert groups(one, other) == [[0, 1], [1, 0]]


def test_a_view_that_one_model_has_not_seen_leaves_it_to_the_others() -> None:
    one = model([1, 1], [[0.0], [1.0]], [[0.0, 0.0], [9.0, 9.0]])
    other = model([1, 1], [[1.0], [0.0]], None)
    assert groups(one, other) == [[0, 1], [1, 0]]


def test_where_nothing_tells_clusters_apart_they_keep_their_numbers() -> None:
    same = model([1, 2, 3], np.ones((3, 2)))
    assert groups(same, same) == [[0, 1, 2], [0, 1, 2]]


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_values_of_any_size_can_be_grouped(size: float) -> None:
    means = size * np.array([[0.0, 0.0], [5.0, 0.0], [0.0, 7.0]])
    assert groups(model([3, 4, 5], means), model([5, 3, 4], means[[2, 0, 1]])) == [
        [0, 1, 2],
        [2, 0, 1],
    ]


def test_empty_clusters_go_anywhere_and_take_no_place() -> None:
    one = model([5, 0, 5], [[0.0], [0.0], [4.0]])
    other = model([5, 5, 5], [[4.0], [0.0], [8.0]])
    found = groups(one, other)
    assert found[0][0] == found[1][1]
    assert found[0][2] == found[1][0]
    assert found[1][2] not in (found[0][0], found[0][2])
