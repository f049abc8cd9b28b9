"""Each step of an iteration minimises, or at least never raises, its part of the objective."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_fs.selector.graph import Graph
from stream_fs.selector.imputation import impute, product, transposed_product
from stream_fs.selector.initialization import first_factors
from stream_fs.selector.parameters import Weights
from stream_fs.selector.steps import (
    EPSILON,
    UStepConstants,
    alpha_step,
    consensus_step,
    fixed_numerator,
    regularisers,
    row_lengths,
    u_products,
    u_step,
    u_step_constants,
    v_step,
)
from tests.reference.algorithm1 import impute as built
from tests.support.random_streams import SEEDS

Array = NDArray[Any]


@dataclass(frozen=True)
class Coefficients:
    a: float
    beta: float
    theta: float
    xi: float


@dataclass(frozen=True)
class Subproblem:
    """One view in the middle of a chunk; `X` (N×d) has its missing rows built."""

    X: Array
    fit: Array
    quality: Array
    XtWU: Array
    R: Array
    U: Array
    V: Array
    consensus: Array
    graph: Graph
    weight: Coefficients
    eta: float
    data: Any

    def objective_of_V(self, V: Array) -> float:
        V = V.astype(np.float64)
        lengths = np.linalg.norm(V, axis=1)
        penalty = (lengths - EPSILON * np.log(lengths + EPSILON)).sum()
        fit = -2 * np.vdot(V, self.XtWU) + np.vdot(V.T @ V, self.R)
        return float(self.weight.a * fit + self.eta * penalty)

    def objective_of_U(self, U: Array) -> float:
        w, S = self.weight, self.graph.S.toarray()
        laplacian = np.diag(S.sum(axis=1)) - S
        misfit = self.fit @ ((self.X - U @ self.V.T) ** 2).sum(axis=1)
        apart = self.quality @ ((U - self.consensus) ** 2).sum(axis=1)
        unlike = ((U.T @ U - np.eye(U.shape[1])) ** 2).sum()
        smooth = np.trace(U.T @ laplacian @ U)
        return float(w.a * misfit + w.beta * apart + w.theta * smooth + w.xi * unlike)

    def constants(self) -> UStepConstants:
        w = self.weight
        return u_step_constants(
            [self.graph], [self.fit], [self.quality], [w.beta], [w.theta], w.xi, np.float64
        )

    def next_U(self) -> Array:
        constants, U = self.constants(), self.U[None]
        a = np.array([[[self.weight.a]]])
        XV = np.empty_like(U)
        product(self.data, self.V, out=XV[0])
        fixed = fixed_numerator(XV, self.consensus, a, constants)
        new = u_step(u_products(U, constants), fixed, a * (self.V.T @ self.V), constants)
        return np.asarray(new[0])


POWERS = st.floats(-2, 2)


@st.composite
def subproblems(draw: st.DrawFn, *, xi: bool) -> Subproblem:
    """With ξ, V fits U and the columns of U have unit length: there the penalty changes nothing.

    The square root is exact for the terms of second order; ξ's is of fourth, and far from a fit
    the step may overshoot.
    """
    rng = np.random.default_rng(draw(SEEDS))
    N, d, K = draw(st.integers(1, 25)), draw(st.integers(1, 12)), draw(st.integers(1, 5))
    present = rng.random(N) >= draw(st.sampled_from([0.0, 0.4, 0.9]))
    weights: Weights = draw(st.sampled_from(["quality", "binary"]))
    rows = rng.random((int(present.sum()), d)) * (rng.random((int(present.sum()), d)) > 0.3)
    j = float(draw(st.integers(0, 30)))
    n = float(draw(st.integers(0, int(j))))
    carried = n * rng.random(d)
    data = impute(rows, present, carried, n, j, weights)
    columns = np.zeros((d, N))
    columns[:, present] = rows.T
    X, w = built(columns, present, carried, n, j)
    U = rng.random((N, K))
    U /= np.linalg.norm(U, axis=0)
    R0, Q0 = rng.random((K, K)), rng.random((d, K)) * n
    R, Q = R0 @ R0.T + U.T @ (data.fit[:, None] * U), Q0 + transposed_product(data, U)
    V = rng.random((d, K)) * 10 ** draw(POWERS)
    if xi:
        own = U.T @ (data.fit[:, None] * U) + 1e-9 * np.eye(K)
        V = first_factors(np.asarray(transposed_product(data, U), np.float64), own) * rng.uniform(
            0.5, 2.0, (d, K)
        )
    S = np.triu(rng.random((N, N)) * (rng.random((N, N)) > 0.6), 1)
    S += S.T
    return Subproblem(
        X=X.T,
        fit=present.astype(np.float64) if weights == "binary" else w**2,
        quality=w**2,
        XtWU=Q,
        R=R,
        U=U,
        V=V,
        consensus=rng.random((N, K)) / np.sqrt(N),
        graph=Graph(scipy.sparse.csr_array(S), S.sum(axis=1)),
        weight=Coefficients(
            a=10 ** draw(POWERS),
            beta=10 ** draw(POWERS),
            theta=10 ** draw(POWERS),
            xi=10 ** draw(st.floats(-1, 3)) if xi else 0.0,
        ),
        eta=10 ** draw(st.floats(-3, 1)),
        data=data,
    )


def not_above(now: float, before: float, scale: float, tolerance: float = 1e-10) -> None:
    assert now <= before + tolerance * max(abs(before), abs(now), scale)


@pytest.mark.parametrize(("dtype", "tolerance"), [(np.float64, 1e-10), (np.float32, 1e-5)])
@given(problem=subproblems(xi=False))
def test_the_V_step_never_raises_its_objective(
    dtype: Any, tolerance: float, problem: Subproblem
) -> None:
    V = problem.V.astype(dtype)
    Q, R = problem.XtWU.astype(dtype), problem.R.astype(dtype)
    new = v_step(V, row_lengths(V), Q, R, problem.weight.a, problem.eta)
    assert new.dtype == dtype
    scale = problem.weight.a * float(np.vdot(V, Q) + np.vdot(V.T @ V, R))
    not_above(problem.objective_of_V(new), problem.objective_of_V(V), scale, tolerance)


@given(problem=subproblems(xi=False))
def test_the_V_step_leads_to_a_stationary_point(problem: Subproblem) -> None:
    """Where V does not vanish, its gradient does."""
    V, Q, R, a = problem.V, problem.XtWU, problem.R, problem.weight.a
    for _ in range(1000):
        V = v_step(V, row_lengths(V), Q, R, a, problem.eta)
    up, down = 2 * a * V @ R + problem.eta * V / (row_lengths(V) + EPSILON)[:, None], 2 * a * Q
    left = np.minimum(V / V.max(initial=1e-9), abs(up - down) / (up + down + 1e-300))
    assert left.max() < 0.02


@pytest.mark.parametrize("xi", [False, True])
@given(data=st.data())
def test_the_U_step_never_raises_its_objective(xi: bool, data: st.DataObject) -> None:
    problem = data.draw(subproblems(xi=xi))
    before, now = problem.objective_of_U(problem.U), problem.objective_of_U(problem.next_U())
    not_above(now, before, 0.0)


@given(problem=subproblems(xi=True), shift=SEEDS)
def test_the_U_step_moves_every_entry_against_its_gradient(problem: Subproblem, shift: int) -> None:
    new = problem.next_U()
    rng = np.random.default_rng(shift)
    at = (int(rng.integers(len(new))), int(rng.integers(new.shape[1])))
    change = np.zeros_like(new)
    change[at] = 1e-5 * problem.U[at]
    ahead = problem.objective_of_U(problem.U + change)
    behind = problem.objective_of_U(problem.U - change)
    slope = (ahead - behind) / max(abs(ahead), 1e-300)
    if abs(slope) > 1e-9 and abs(new[at] / problem.U[at] - 1) > 1e-4:
        assert np.sign(new[at] - problem.U[at]) == -np.sign(slope)


@dataclass(frozen=True)
class Views:
    """U of several views (views×N×K) and the constants of its step."""

    U: Array
    graphs: list[Array]
    qualities: list[Array]
    betas: list[float]
    thetas: list[float]
    xi: float
    constants: UStepConstants
    rng: np.random.Generator

    def apart(self, consensus: Array) -> float:
        """Σ_v β‖W(U − U*)‖²."""
        return sum(
            beta * float(quality @ ((U - consensus) ** 2).sum(axis=1))
            for U, quality, beta in zip(self.U, self.qualities, self.betas, strict=True)
        )


@st.composite
def several_views(draw: st.DrawFn) -> Views:
    rng = np.random.default_rng(draw(SEEDS))
    views, rows, clusters = (draw(st.integers(1, most)) for most in (4, 12, 4))
    qualities = [rng.random(rows) * (rng.random(rows) > 0.3) for _ in range(views)]
    qualities[0] = np.ones(rows)
    betas, thetas = ([float(b) for b in 10 ** rng.uniform(-2, 2, views)] for _ in range(2))
    upper = [np.triu(rng.random((rows, rows)), 1) for _ in range(views)]
    graphs = [S + S.T for S in upper]
    xi = float(rng.choice([0.0, 10.0, 1e3]))
    constants = u_step_constants(
        [Graph(scipy.sparse.csr_array(S), S.sum(axis=1)) for S in graphs],
        qualities,
        qualities,
        betas,
        thetas,
        xi,
        np.float64,
    )
    U = rng.random((views, rows, clusters))
    return Views(U, graphs, qualities, betas, thetas, xi, constants, rng)


@given(case=several_views())
def test_the_consensus_is_best(case: Views) -> None:
    best = consensus_step(case.U, case.constants)
    for size in (1e-3, 1.0):
        for _ in range(5):
            other = best + size * case.rng.normal(size=best.shape)
            assert case.apart(best) < case.apart(other)


@given(case=several_views())
def test_the_regularisers_are_those_of_the_objective(case: Views) -> None:
    consensus = consensus_step(case.U, case.constants)
    expected = case.apart(consensus)
    for U, S, theta in zip(case.U, case.graphs, case.thetas, strict=True):
        laplacian = np.diag(S.sum(axis=1)) - S
        expected += theta * float(np.trace(U.T @ laplacian @ U))
        expected += case.xi * float(((U.T @ U - np.eye(U.shape[1])) ** 2).sum())
    terms = regularisers(u_products(case.U, case.constants), consensus, case.constants)
    scale = float(np.vdot(case.U, case.U * (case.constants.diagonal + 2 * case.xi)))
    assert terms == pytest.approx(expected, rel=1e-9, abs=1e-9 * scale)


@given(
    seed=SEEDS,
    losses=st.lists(st.floats(1e-3, 1e3), min_size=1, max_size=5),
    lam=st.floats(1.2, 10.0),
)
def test_the_view_weights_are_best_on_the_simplex(
    seed: int, losses: list[float], lam: float
) -> None:
    loss = np.array(losses)
    best = np.array(alpha_step(losses, lam))
    assert best.sum() == pytest.approx(1.0)
    assert (best > 0).all()
    objective = best**lam @ loss
    rng = np.random.default_rng(seed)
    for other in rng.dirichlet(np.full(len(loss), 0.7), 20):
        assert objective <= other**lam @ loss * (1 + 1e-9)
        near = 0.99 * best + 0.01 * other
        assert objective <= near**lam @ loss * (1 + 1e-9)


@given(losses=st.lists(st.floats(1e-3, 1e3), min_size=2, max_size=5))
def test_a_large_lambda_makes_the_views_equal(losses: list[float]) -> None:
    np.testing.assert_allclose(alpha_step(losses, 1e9), 1 / len(losses), rtol=1e-6)


@given(losses=st.lists(st.floats(0, 1e300), min_size=1, max_size=5), lam=st.floats(1.001, 1e6))
def test_view_weights_stay_on_the_simplex_for_any_loss(losses: list[float], lam: float) -> None:
    alpha = np.array(alpha_step(losses, lam))
    assert (alpha > 0).all()
    assert alpha.sum() == pytest.approx(1.0)
    assert alpha[int(np.argmin(losses))] == alpha.max()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_an_entry_of_V_that_is_zero_stays_zero_whatever_comes_later(dtype: Any) -> None:
    """A feature that the first chunk did not have; the quotient must not overflow."""
    V = np.array([[0.0, 0.0], [1.0, 0.0]], dtype)
    Q = np.array([[1e9, 1e9], [1.0, 1e9]], dtype)
    new = v_step(V, row_lengths(V), Q, np.eye(2, dtype=dtype), 1.0, 0.01)
    assert np.isfinite(new).all()
    np.testing.assert_array_equal(new[V == 0], 0.0)
    assert new[1, 0] == pytest.approx(1.0, rel=0.01)


def test_an_entry_of_U_that_is_zero_stays_zero() -> None:
    U = np.array([[[0.0, 1.0], [1.0, 0.0]]])
    graph = Graph(scipy.sparse.csr_array(1e6 * (1 - np.eye(2))), np.full(2, 1e6))
    ones = np.ones(2)
    constants = u_step_constants([graph], [ones], [ones], [1.0], [1.0], 0.0, np.float64)
    fixed = np.full((1, 2, 2), 1e9)
    new = u_step(u_products(U, constants), fixed, np.eye(2)[None], constants)
    assert np.isfinite(new).all()
    np.testing.assert_array_equal(new[U == 0], 0.0)
