"""The iterations of one chunk: V, U, consensus and view weights in turn, until they settle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stream_fs.selector.arrays import Floats, Working, frobenius
from stream_fs.selector.imputation import Imputed, product, transposed_product
from stream_fs.selector.params import Params
from stream_fs.selector.updates import (
    Indicators,
    Ties,
    alpha_step,
    consensus_step,
    drive,
    indicator_terms,
    indicators,
    row_lengths,
    u_step,
    v_step,
)

LEAST_LOSS = 1e-12
"""Floor of a view's loss relative to its energy."""
LEAST_TERM = 1e-150
"""Floor of a first term's weight, by which V's penalty is divided."""
MOST_TERM = {np.dtype(np.float32): 1e12, np.dtype(np.float64): 1e150}
"""Largest weight of a first term, by the precision of U: no product with it can overflow."""
LEAST_ENERGY = 1e-150
"""Below this a view has nothing to explain; j/s must stay finite."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One view's data of a chunk and what is carried into it; constant during the iterations.

    `energy` is this chunk's Σw²‖x‖²; `R0` (K×K), `Q0` (d×K, in the precision of the rows, stored by
    column), `energy0` and `loss0` are the sums before the chunk.
    """

    data: Imputed
    energy: float
    R0: Floats
    Q0: Working
    energy0: float
    loss0: float
    eta: float

    @property
    def total_energy(self) -> float:
        """Energy of everything so far, this chunk included."""
        return self.energy0 + self.energy


@dataclass(slots=True, eq=False)
class Factor:
    """One view's V (d×K, in the precision of the rows, stored by column) and its row norms."""

    V: Working
    lengths: Working


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Per view: `chunk` = ‖W(X − UVᵀ)‖² of this chunk, `carried` that of V over earlier data."""

    chunk: Sequence[float]
    carried: Sequence[float]


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Where the iterations ended: U of all views with its products, V and losses per view.

    `alpha` is over the views of this chunk and sums to 1.
    """

    indicators: Indicators
    factors: Sequence[Factor]
    losses: Losses
    consensus: Working
    alpha: Sequence[float]
    objective: tuple[float, ...]
    converged: bool

    @property
    def U(self) -> Working:
        """(views×N×K)."""
        return self.indicators.U


def iterate(
    problems: Sequence[Problem],
    tied: Ties,
    U: Working,
    start: Sequence[Working],
    alpha: Sequence[float],
    j: float,
    params: Params,
) -> Fit:
    """Minimise the chunk's objective (Eq. 8), at most `max_iterations` times around.

    Starts from `U` (views×N×K) and each view's V. `j` counts all instances so far, this chunk
    included. Two products with each view's rows per iteration. V and then U of every view, U*, α:
    the U steps of different views do not depend on one another, and are taken together.
    """
    factors = [_factor(problem, V) for problem, V in zip(problems, start, strict=True)]
    now = indicators(U, tied)
    consensus = consensus_step(U, tied)
    XV, VtV = np.empty_like(U), np.empty_like(now.own)
    objective: list[float] = []
    converged = False
    a = term_weights(problems, alpha, j, params, U.dtype)
    while len(objective) < params.max_iterations and not converged:
        for v, (problem, factor) in enumerate(zip(problems, factors, strict=True)):
            _update_V(problem, factor, now.U[v], now.inner[v], a[v], params.inner_updates)
            product(problem.data, factor.V, out=XV[v])
            VtV[v] = factor.V.T @ factor.V
        weights = np.array(a, U.dtype)[:, None, None]
        driving, aVtV = drive(XV, consensus, weights, tied), VtV * weights
        for _ in range(params.inner_updates):
            now = indicators(u_step(now, driving, aVtV, tied), tied)
        losses = _losses(problems, factors, now, XV, VtV)
        consensus = consensus_step(now.U, tied)
        if params.view_weights == "learned":
            alpha = alpha_step(_view_losses(problems, losses, params), params.lam)
        a = term_weights(problems, alpha, j, params, U.dtype)
        objective.append(
            sum(weight * loss for weight, loss in zip(a, losses.chunk, strict=True))
            + indicator_terms(now, consensus, tied)
            + _sparsity(problems, factors)
        )
        if len(objective) > 1 and len(objective) >= params.min_iterations:
            change = abs(objective[-1] - objective[-2])
            converged = change <= params.tolerance * abs(objective[-2])
    return Fit(now, factors, losses, consensus, alpha, tuple(objective), converged)


def term_weights(
    problems: Sequence[Problem],
    alpha: Sequence[float],
    j: float,
    params: Params,
    precision: np.dtype[Any],
) -> list[float]:
    """Weight of each view's first term: α^λ, or (views·α)^λ·j/s so that energies compare."""
    weights = []
    for problem, share in zip(problems, alpha, strict=True):
        weight = 1.0
        if params.view_weights == "learned":
            weight = (share * len(problems) if params.energy_scaling else share) ** params.lam
        if params.energy_scaling and problem.total_energy > LEAST_ENERGY:
            weight *= j / problem.total_energy
        weights.append(min(max(weight, LEAST_TERM), MOST_TERM[precision]))
    return weights


def _factor(problem: Problem, V: Working) -> Factor:
    V = V.astype(problem.data.rows.dtype, order="F")
    return Factor(V, row_lengths(V))


def _update_V(
    problem: Problem, factor: Factor, U: Working, inner: Working, a: float, repeats: int
) -> None:
    """Several V steps on the same product with the rows."""
    Q = transposed_product(problem.data, U)
    Q += problem.Q0  # Eq. 11
    R = (problem.R0 + inner).astype(Q.dtype)
    for _ in range(repeats):
        factor.V = v_step(factor.V, factor.lengths, Q, R, a, problem.eta)
        factor.lengths = row_lengths(factor.V)


def _losses(
    problems: Sequence[Problem],
    factors: Sequence[Factor],
    now: Indicators,
    XV: Working,
    VtV: Working,
) -> Losses:
    """The loss of every view: of this chunk from W̃XV, of earlier ones from their sums."""
    chunk, carried = [], []
    for v, (problem, factor) in enumerate(zip(problems, factors, strict=True)):
        fitted = 2 * float(np.vdot(XV[v], now.U[v]))
        chunk.append(problem.energy - fitted + float(np.vdot(VtV[v], now.inner[v])))
        fitted = 2 * frobenius(factor.V, problem.Q0)
        carried.append(problem.energy0 - fitted + float(np.vdot(VtV[v], problem.R0)))
    return Losses(chunk, carried)


def relative_losses(problems: Sequence[Problem], losses: Losses) -> list[float]:
    """(s − 2⟨V,Q⟩ + ⟨VᵀV,R⟩)/s: the share of each view's energy that V leaves unexplained."""
    return [
        _share(problem, chunk + carried)
        for problem, chunk, carried in zip(problems, losses.chunk, losses.carried, strict=True)
    ]


def _view_losses(problems: Sequence[Problem], losses: Losses, params: Params) -> list[float]:
    """What α follows, per view: the loss of the present V over all data, or accumulated losses."""
    if params.loss == "exact":
        shares = relative_losses(problems, losses)
    else:
        shares = [
            _share(problem, chunk + problem.loss0)
            for problem, chunk in zip(problems, losses.chunk, strict=True)
        ]
    if params.energy_scaling:
        return shares
    return [share * p.total_energy for share, p in zip(shares, problems, strict=True)]


def _share(problem: Problem, loss: float) -> float:
    """A loss relative to the view's energy, floored; all of it where there is no energy."""
    energy = problem.total_energy
    return max(loss / energy, LEAST_LOSS) if energy > 0 else 1.0


def _sparsity(problems: Sequence[Problem], factors: Sequence[Factor]) -> float:
    """Σ_v η‖V‖_{2,1}."""
    return sum(
        problem.eta * float(factor.lengths.sum())
        for problem, factor in zip(problems, factors, strict=True)
    )
