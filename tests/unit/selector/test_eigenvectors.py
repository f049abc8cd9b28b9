"""Leading eigenvectors of large graphs, connected or not, and the first chunks they come from."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from scipy.sparse.linalg import ArpackNoConvergence, eigsh

from stream_fs.selector import View, eigenvectors, initial_state, params, read_chunk, update
from stream_fs.selector.eigenvectors import DENSE_ROWS, leading_eigenvectors
from stream_fs.selector.graph import Graph, neighbour_graph
from stream_fs.selector.initialization import spectral_start
from stream_fs.selector.kernels.fallback import nearest_rows
from tests.support.random_streams import state_bytes

ROWS = DENSE_ROWS + 500


def cliques(sizes: Any, bridge: float = 0.0) -> Graph:
    """Complete graphs; a `bridge` joins the first row of each to the first row of the next."""
    S: Any = scipy.sparse.block_diag(
        [np.ones((size, size)) - np.eye(size) for size in sizes], "lil"
    )
    starts = np.cumsum([0, *sizes[:-1]])
    if bridge:
        for one, other in pairwise(starts):
            S[one, other] = S[other, one] = bridge
    csr = scipy.sparse.csr_array(S)
    return Graph(csr, np.asarray(csr.sum(axis=1), np.float64).ravel())


def ring(size: int, width: int = 5) -> scipy.sparse.csr_array[Any]:
    """A connected graph with distinct weights, each row joined to the next few; M itself."""
    rng = np.random.default_rng(1)
    one = np.repeat(np.arange(size), width)
    other = (one + np.tile(np.arange(1, width + 1), size)) % size
    half = scipy.sparse.coo_array((rng.random(len(one)), (one, other)), shape=(size, size))
    S: Any = half + half.T
    scale = 1 / np.sqrt(np.asarray(S.sum(axis=1)).ravel())
    return scipy.sparse.csr_array(S.multiply(scale[:, None]).multiply(scale))


def repeats(rng: np.random.Generator) -> Any:
    return rng.random((200, 6))[rng.integers(0, 200, ROWS)]


KINDS: dict[str, Callable[[np.random.Generator], Any]] = {
    "200 patterns, repeated": repeats,
    "tight groups": lambda rng: repeats(rng) + 1e-6 * rng.random((ROWS, 6)),
    "all rows equal": lambda rng: np.tile(rng.random(6), (ROWS, 1)),
}


@pytest.mark.parametrize("kind", KINDS)
def test_a_large_first_chunk_of_repeats_is_folded(kind: str) -> None:
    rng = np.random.default_rng(0)
    rows = KINDS[kind](rng)
    chosen = params([View("a", 6)], 10, max_iterations=10)
    chunk = read_chunk(chosen.views, {"a": rows})
    after, report = update(initial_state(chosen), chunk)
    assert report.rows == ROWS
    assert state_bytes(update(initial_state(chosen), chunk)[0]) == state_bytes(after)


def test_no_small_component_is_divided_between_clusters() -> None:
    sizes = np.random.default_rng(0).integers(5, 9, 250)
    P = spectral_start([cliques(sizes)], 10, np.random.default_rng(0))
    assert len(P) > DENSE_ROWS
    found, component = P.argmax(axis=1), np.repeat(np.arange(len(sizes)), sizes)
    assert len(set(found)) == 10
    assert len(set(zip(component, found, strict=True))) == len(sizes)


def test_weakly_joined_groups_are_clustered_in_bounded_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Connected in name only: the iterative solver gives up, and the groups stay whole."""
    calls = []

    def counted(*arguments: Any, **named: Any) -> Any:
        calls.append(named["maxiter"])
        return eigsh(*arguments, **named)

    monkeypatch.setattr(eigenvectors, "eigsh", counted)
    monkeypatch.setattr(eigenvectors, "WORK", 1e7)
    sizes = np.random.default_rng(0).integers(5, 9, 250)
    P = spectral_start([cliques(sizes, bridge=1e-9)], 10, np.random.default_rng(0))
    assert len(calls) == 1
    assert calls[0] < 100
    component = np.repeat(np.arange(len(sizes)), sizes)
    assert len(set(zip(component, P.argmax(axis=1), strict=True))) == len(sizes)


def test_a_large_graph_without_edges_has_clusters() -> None:
    graph = Graph(scipy.sparse.csr_array((ROWS, ROWS)), np.zeros(ROWS))
    P = spectral_start([graph], 3, np.random.default_rng(0))
    np.testing.assert_allclose(P.sum(axis=1), 1.0)


def test_a_connected_graph_has_the_eigenvectors_of_the_iterative_solver() -> None:
    """To the byte: published rankings depend on them."""
    M = ring(ROWS)
    expected = eigsh(M, k=4, which="LA", v0=np.random.default_rng(3).random(ROWS))[1]
    found = leading_eigenvectors(M, 4, np.random.default_rng(3))
    assert found.tobytes() == expected.tobytes()


def normalised(S: Any) -> Any:
    scale = 1 / np.sqrt(np.asarray(S.sum(axis=1)).ravel())
    return scipy.sparse.csr_array(S.multiply(scale[:, None]).multiply(scale))


def blobs(count: int) -> tuple[Graph, Any]:
    """Groups of rows far apart, each with a neighbourhood graph of its own; and whose row it is."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, count, ROWS)
    rows = 10 * rng.normal(size=(count, 6))[group] + 0.1 * rng.normal(size=(ROWS, 6))
    products = rows @ rows.T
    return neighbour_graph(products, nearest_rows(products, 5), np.arange(ROWS), ROWS), group


GRAPHS: dict[str, Callable[[], Any]] = {
    "connected": lambda: ring(ROWS),
    "8 components, cluster-like": lambda: normalised(blobs(8)[0].S),
    "5 equal components": lambda: cliques([300] * 5).S / 299,
    "more components than vectors": lambda: normalised(blobs(15)[0].S),
    "a giant and tiny ones": lambda: normalised(cliques([ROWS - 180, *[6] * 30]).S),
    "chain": lambda: normalised(cliques([2] * (ROWS // 2), bridge=1.0).S),
}


@pytest.mark.parametrize("kind", GRAPHS)
@pytest.mark.parametrize("exhausted", [False, True])
def test_a_sparse_solver_finds_what_the_dense_one_does(
    kind: str, exhausted: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every copy of an eigenvalue too; also where the solver with one vector finds nothing."""
    if exhausted:
        monkeypatch.setattr(eigenvectors, "eigsh", no_convergence)
    M = GRAPHS[kind]()
    found = leading_eigenvectors(M, 10, np.random.default_rng(0))
    monkeypatch.setattr(eigenvectors, "DENSE_ROWS", ROWS)
    exact = leading_eigenvectors(M, 10, np.random.default_rng(0))
    np.testing.assert_allclose(found.T @ found, np.eye(10), atol=1e-12)
    np.testing.assert_allclose(
        np.trace(found.T @ (M @ found)), np.trace(exact.T @ (M @ exact)), rtol=1e-7
    )


def no_convergence(*_: Any, **__: Any) -> Any:
    raise ArpackNoConvergence("no convergence", np.empty(0), np.empty((ROWS, 0)))


def test_groups_that_are_apart_are_the_clusters() -> None:
    graph, group = blobs(10)
    found = spectral_start([graph], 10, np.random.default_rng(0)).argmax(axis=1)
    assert len(set(zip(group, found, strict=True))) == len(set(found)) == 10


def test_rows_in_a_few_distances_give_the_same_bytes() -> None:
    """One-hot rows and a few complete ones: the solver needs random vectors on the way."""
    rows = np.eye(ROWS)
    rows[:6] = 1.0
    chosen = params([View("a", ROWS)], 5, max_iterations=10)
    chunk = read_chunk(chosen.views, {"a": scipy.sparse.csr_array(rows)})
    states = {state_bytes(update(initial_state(chosen), chunk)[0]) for _ in range(3)}
    assert len(states) == 1


@pytest.mark.parametrize(("width", "clusters"), [(5, 2), (5, 100), (100, 10)])
def test_the_work_is_limited_whatever_the_graph(
    width: int, clusters: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neighbours count: with many of them a product takes most of the time."""
    touched = []

    def given_up(M: Any, **named: Any) -> Any:
        touched.append(named["maxiter"] * (named["ncv"] - named["k"]) * M.nnz)
        return no_convergence()

    def counted(M: Any, X: Any, _least: float) -> Any:
        touched.append(eigenvectors.DEGREE * X.shape[1] * M.nnz)
        return X

    monkeypatch.setattr(eigenvectors, "eigsh", given_up)
    monkeypatch.setattr(eigenvectors, "_filtered", counted)
    monkeypatch.setattr(eigenvectors, "RESIDUAL", 0.0)
    monkeypatch.setattr(eigenvectors, "WORK", 1e9)
    leading_eigenvectors(ring(ROWS, width), clusters, np.random.default_rng(0))
    assert len(touched) >= 2
    assert sum(touched) < 2e9
