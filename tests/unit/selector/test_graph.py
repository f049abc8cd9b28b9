"""The neighbourhood graph, and the clusters that start the consensus."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.selector import eigenvectors, initialization
from stream_fs.selector.graph import Graph, neighbour_graph
from stream_fs.selector.initialization import (
    PresentRows,
    Profile,
    assign,
    clusters_before,
    clusters_with,
    first_factors,
    indicator,
    spectral_start,
)
from stream_fs.selector.kernels.dispatch import nearest_rows
from tests.reference import explicit
from tests.reference.algorithm1 import neighbour_graph as plain_graph
from tests.support.random_streams import SEEDS


def joined(products: Any, at: Any, size: int, neighbours: int) -> Graph:
    """As the update joins them."""
    return neighbour_graph(products, nearest_rows(products, neighbours), at, size)


@given(
    seed=SEEDS,
    size=st.integers(1, 25),
    neighbours=st.integers(1, 7),
    missing=st.sampled_from([0.0, 0.4, 1.0]),
)
def test_the_graph_is_that_of_the_plain_loop(
    seed: int, size: int, neighbours: int, missing: float
) -> None:
    rng = np.random.default_rng(seed)
    present = rng.random(size) >= missing
    X = rng.random((size, 4))
    rows = X[present]
    graph = joined(rows @ rows.T, np.flatnonzero(present), size, neighbours)
    S = graph.S.toarray()
    np.testing.assert_allclose(S, plain_graph(X.T, present, neighbours), atol=1e-9)
    np.testing.assert_array_equal(S, S.T)
    np.testing.assert_allclose(graph.degrees, S.sum(axis=1))
    assert not S.diagonal().any()
    assert not S[~present].any()


def test_equal_rows_are_joined_with_full_weight() -> None:
    S = joined(np.ones((4, 4)), np.arange(4), 4, 3).S.toarray()
    np.testing.assert_array_equal(S, 1 - np.eye(4))


def blobs(rng: np.random.Generator, each: int) -> tuple[Any, Any]:
    centres = 10 * np.eye(3)
    labels = np.repeat(np.arange(3), each)
    return centres[labels] + rng.normal(size=(3 * each, 3)), labels


@pytest.mark.parametrize("dense_rows", [1000, 10])
def test_the_first_clusters_are_those_of_the_graph(
    dense_rows: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By either way to the eigenvectors."""
    monkeypatch.setattr(eigenvectors, "DENSE_ROWS", dense_rows)
    rng = np.random.default_rng(1)
    X, labels = blobs(rng, 20)
    order = rng.permutation(60)
    X, labels = X[order], labels[order]
    parts = [np.arange(0, 60, 2), np.arange(60)]
    graphs = [joined(X[at] @ X[at].T, at, 60, 5) for at in parts]
    P = spectral_start(graphs, 3, np.random.default_rng(0))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    np.testing.assert_allclose(np.sort(P, axis=1)[:, -1], 0.9 + 0.1 / 3)
    found = P.argmax(axis=1)
    assert len(set(zip(found, labels, strict=True))) == 3


def test_the_best_of_several_starts_is_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two pairs of rows; of the clusterings that k-means might end in, one fits."""
    ends = iter([[0, 1, 0, 1], [0, 1, 1, 1], [0, 0, 1, 1], [0, 1, 1, 0], [1, 1, 0, 1]])

    def kmeans(points: Any, *_: Any, **__: Any) -> tuple[Any, Any]:
        labels = np.array(next(ends))
        return np.array([points[labels == k].mean(axis=0) for k in range(2)]), labels

    monkeypatch.setattr(initialization, "kmeans2", kmeans)
    pairs = np.kron(np.eye(2), 1 - np.eye(2))
    graph = Graph(scipy.sparse.csr_array(pairs), pairs.sum(axis=1))
    P = spectral_start([graph], 2, np.random.default_rng(0))
    assert P.argmax(axis=1).tolist() == [0, 0, 1, 1]
    assert next(ends, None) is None


def test_a_cluster_may_lose_its_rows_without_a_word(monkeypatch: pytest.MonkeyPatch) -> None:
    """Two kinds of rows for three clusters: one of k-means' is empty, whatever it begins with."""
    kinds = np.repeat(np.eye(2, 3), 3, axis=0)
    monkeypatch.setattr(initialization, "leading_eigenvectors", lambda *_: kinds)
    every = np.ones((6, 6)) - np.eye(6)
    graph = Graph(scipy.sparse.csr_array(every), every.sum(axis=1))
    P = spectral_start([graph], 3, np.random.default_rng(0))
    first, *_, last = found = P.argmax(axis=1).tolist()
    assert first != last
    assert found == 3 * [first] + 3 * [last]


def test_a_graph_without_edges_can_be_clustered() -> None:
    empty = joined(np.zeros((0, 0)), np.zeros(0, np.intp), 5, 5)
    assert isinstance(empty, Graph)
    P = spectral_start([empty], 2, np.random.default_rng(0))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def seen(rows: Any, at: Any, shift: float) -> PresentRows:
    """Rows as the update hands them over, with the products of what is left of them."""
    centre = np.full(rows.shape[1], shift)
    return PresentRows(rows, at, rows.sum(axis=0), centre, (rows - centre) @ (rows - centre).T)


@given(
    seed=SEEDS,
    views=st.integers(1, 3),
    size=st.integers(1, 12),
    clusters=st.integers(1, 4),
    d=st.sampled_from([2, 5]),
    shift=st.sampled_from([0.0, 0.5]),
)
def test_rows_are_assigned_as_the_plain_loop_does(
    seed: int, views: int, size: int, clusters: int, d: int, shift: float
) -> None:
    """To stored clusters, and to those with the chunk's rows, more or fewer than features."""
    rng = np.random.default_rng(seed)
    X = [rng.random((size, d)) for _ in range(views)]
    present = [rng.random(size) > 0.4 for _ in range(views)]
    sums = [
        explicit.weighted_sums(
            rng.random((9, d)), np.ones(9, bool), rng.dirichlet([1] * clusters, 9)
        )
        for _ in range(views)
    ]
    evidence = [
        seen(x[mask], np.flatnonzero(mask), shift) for x, mask in zip(X, present, strict=True)
    ]
    before = [
        clusters_before(view, Profile(s.C, s.Z, s.m, s.n))
        for view, s in zip(evidence, sums, strict=True)
    ]
    P = assign(size, evidence, before, clusters)
    np.testing.assert_allclose(P, explicit.assign(X, present, sums), rtol=1e-6)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    more = [clusters_with(known, view, P) for known, view in zip(before, evidence, strict=True)]
    together = []
    for x, mask, old in zip(X, present, sums, strict=True):
        new = explicit.weighted_sums(x, mask, P)
        together.append(explicit.Sums(old.Z + new.Z, old.C + new.C, old.m + new.m, old.n + new.n))
    again = assign(size, evidence, more, clusters)
    np.testing.assert_allclose(again, explicit.assign(X, present, together), rtol=1e-6)


def test_single_precision_tells_clusters_apart_that_lie_far_from_zero() -> None:
    """Rows of unit length that differ by a thousandth: what they share is not to drown it."""
    rng = np.random.default_rng(0)
    labels = rng.integers(3, size=60)
    rows = 100 + 0.1 * (rng.random((3, 40))[labels] + 0.3 * rng.random((60, 40)))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    rows = rows.astype(np.float32)
    P = np.eye(3)[labels]
    stored = Profile(P.sum(axis=0), rows.T.astype(np.float64) @ P, rows.sum(axis=0), 60.0)
    centre = rows.mean(axis=0)
    view = PresentRows(rows, np.arange(60), stored.sum, centre, (rows - centre) @ (rows - centre).T)
    known = clusters_before(view, stored)
    for clusters in (known, clusters_with(known, view, P)):
        assert assign(60, [view], [clusters], 3).argmax(axis=1).tolist() == labels.tolist()


def test_a_view_without_a_profile_says_nothing() -> None:
    rows = np.random.default_rng(0).random((4, 2))
    view = seen(rows, np.arange(4), 0.0)
    empty = clusters_before(view, Profile(np.zeros(3), np.zeros((2, 3)), np.zeros(2), 0.0))
    np.testing.assert_allclose(assign(4, [view], [empty], 3), 1 / 3)


def test_the_indicator_has_columns_of_unit_length() -> None:
    P = np.array([[0.9, 0.1], [0.2, 0.8]])
    U = indicator(P)
    np.testing.assert_allclose(np.linalg.norm(U, axis=0), 1.0)
    np.testing.assert_allclose(U[0, 0] / U[1, 0], 0.901 / 0.201)


@given(seed=SEEDS, d=st.integers(1, 8), clusters=st.integers(1, 4), power=st.integers(-100, 100))
def test_the_first_V_solves_the_ridge_problem(seed: int, d: int, clusters: int, power: int) -> None:
    rng = np.random.default_rng(seed)
    U = rng.random((12, clusters))
    R, Q = U.T @ U, rng.random((d, clusters)) * 10.0**power
    np.testing.assert_allclose(first_factors(Q, R), explicit.first_V(R, Q), rtol=1e-6)
    assert (first_factors(Q, R) > 0).all()


def test_where_nothing_is_known_the_first_V_is_zero() -> None:
    assert not first_factors(np.zeros((3, 2)), np.zeros((2, 2))).any()


@pytest.mark.parametrize("neighbours", [5, 20])
def test_rows_that_are_alike_make_no_hubs(neighbours: int) -> None:
    """Of 300 rows of three kinds, all 100 of a kind are equally near."""
    rows = np.eye(3)[np.random.default_rng(0).integers(3, size=300)]
    graph = joined(rows @ rows.T, np.arange(300), 300, neighbours)
    assert set((graph.S.toarray() > 0).sum(axis=1).tolist()) == {2 * neighbours}


def test_ties_take_only_the_place_of_ties() -> None:
    """Nearer rows are neighbours in any case; of those at the limit, the next ones in the order."""
    places = np.array([0.0, 1.0, 1.0, 1.0, 0.5, 9.0])
    distances = (places[:, None] - places) ** 2
    gram = -distances / 2  # squares of zero: distances are what is in the matrix
    S = joined(gram, np.arange(6), 6, 2).S.toarray() > 0
    edges = [np.flatnonzero(row).tolist() for row in S]
    assert edges == [[1, 4], [0, 2, 3, 4, 5], [1, 3, 5], [1, 2], [0, 1], [1, 2]]
