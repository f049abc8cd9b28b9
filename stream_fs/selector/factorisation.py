"""The iterations of one chunk: V, U, consensus and view weights in turn, until they settle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.selector.arrays import Floats, Working, frobenius
from stream_fs.selector.imputation import Imputed, product, transposed_product
from stream_fs.selector.params import Params
from stream_fs.selector.updates import (
    Ties,
    alpha_step,
    consensus_step,
    drive,
    indicator_terms,
    pulled,
    row_lengths,
    u_step,
    v_step,
)

LEAST_LOSS = 1e-12
"""Floor of a view's loss relative to its energy."""
LEAST_TERM = 1e-150
"""Floor of a first term's weight, by which V's penalty is divided."""
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
    """One view's V (d×K, in the precision of the rows, stored by column) and its row norms.

    `loss` = ‖W(X − UVᵀ)‖² of this chunk, `carried_loss` that of V over all earlier data.
    """

    V: Working
    lengths: Working
    loss: float = 0.0
    carried_loss: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Where the iterations ended: U (views×N×K), its UᵀW̃U (views×K×K), V and losses per view.

    `alpha` is over the views of this chunk and sums to 1.
    """

    U: Floats
    inner: Floats
    factors: Sequence[Factor]
    consensus: Floats
    alpha: Sequence[float]
    objective: tuple[float, ...]
    converged: bool


def iterate(
    problems: Sequence[Problem],
    tied: Ties,
    U: Floats,
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
    inner = _inner(U, tied)
    pulling = pulled(U, tied)
    consensus = consensus_step(U, tied)
    XV, VtV = np.empty_like(U), np.empty_like(inner)
    objective: list[float] = []
    converged = False
    a = term_weights(problems, alpha, j, params)
    while len(objective) < params.max_iterations and not converged:
        for number, (problem, factor) in enumerate(zip(problems, factors, strict=True)):
            _update_V(problem, factor, U[number], inner[number], a[number], params.inner_updates)
            product(problem.data, factor.V, out=XV[number])
            VtV[number] = factor.V.T @ factor.V
        driving = drive(XV, consensus, a, tied)
        aVtV = VtV * a[:, None, None]
        for _ in range(params.inner_updates):
            U = u_step(U, driving, pulling, aVtV, tied)
            pulling = pulled(U, tied)
        inner = _inner(U, tied)
        _measure(problems, factors, U, inner, XV, VtV)
        consensus = consensus_step(U, tied)
        if params.view_weights == "learned":
            alpha = alpha_step(_view_losses(problems, factors, params), params.lam)
        a = term_weights(problems, alpha, j, params)
        objective.append(
            float(a @ [factor.loss for factor in factors])
            + indicator_terms(U, pulling, consensus, tied)
            + _sparsity(problems, factors)
        )
        if len(objective) > 1 and len(objective) >= params.min_iterations:
            change = abs(objective[-1] - objective[-2])
            converged = change <= params.tolerance * abs(objective[-2])
    return Fit(U, inner, factors, consensus, alpha, tuple(objective), converged)


def term_weights(
    problems: Sequence[Problem], alpha: Sequence[float], j: float, params: Params
) -> Floats:
    """Weight of each view's first term: α^λ, or (views·α)^λ·j/s so that energies compare."""
    weights = []
    for problem, share in zip(problems, alpha, strict=True):
        weight = 1.0
        if params.view_weights == "learned":
            weight = (share * len(problems) if params.energy_scaling else share) ** params.lam
        if params.energy_scaling and problem.total_energy > LEAST_ENERGY:
            weight *= j / problem.total_energy
        weights.append(max(weight, LEAST_TERM))
    return np.array(weights)


def _factor(problem: Problem, V: Working) -> Factor:
    V = V.astype(problem.data.rows.dtype, order="F")
    return Factor(V, row_lengths(V))


def _update_V(
    problem: Problem, factor: Factor, U: Floats, inner: Floats, a: float, repeats: int
) -> None:
    """Several V steps on the same product with the rows."""
    Q = transposed_product(problem.data, U)
    Q += problem.Q0  # Eq. 11
    R = (problem.R0 + inner).astype(Q.dtype)
    for _ in range(repeats):
        factor.V = v_step(factor.V, factor.lengths, Q, R, float(a), problem.eta)
        factor.lengths = row_lengths(factor.V)


def _inner(U: Floats, tied: Ties) -> Floats:
    """UᵀW̃U of every view; (views×K×K)."""
    return U.transpose(0, 2, 1) @ (U * tied.fit)


def _measure(
    problems: Sequence[Problem],
    factors: Sequence[Factor],
    U: Floats,
    inner: Floats,
    XV: Floats,
    VtV: Floats,
) -> None:
    """The loss of every view: of this chunk from W̃XV, of earlier ones from their sums."""
    for number, (problem, factor) in enumerate(zip(problems, factors, strict=True)):
        fitted = 2 * float(np.vdot(XV[number], U[number]))
        factor.loss = problem.energy - fitted + float(np.vdot(VtV[number], inner[number]))
        carried = 2 * frobenius(factor.V, problem.Q0)
        factor.carried_loss = problem.energy0 - carried + float(np.vdot(VtV[number], problem.R0))


def relative_loss(problem: Problem, factor: Factor) -> float:
    """(s − 2⟨V,Q⟩ + ⟨VᵀV,R⟩)/s: the share of the view's energy that its V leaves unexplained."""
    return _share(problem, factor.loss + factor.carried_loss)


def _view_losses(
    problems: Sequence[Problem], factors: Sequence[Factor], params: Params
) -> list[float]:
    """What α follows, per view: the loss of the present V over all data, or accumulated losses."""
    losses = []
    for problem, factor in zip(problems, factors, strict=True):
        earlier = factor.carried_loss if params.loss == "exact" else problem.loss0
        share = _share(problem, factor.loss + earlier)
        losses.append(share if params.energy_scaling else share * problem.total_energy)
    return losses


def _share(problem: Problem, loss: float) -> float:
    """A loss relative to the view's energy, floored; all of it where there is no energy."""
    energy = problem.total_energy
    return max(loss / energy, LEAST_LOSS) if energy > 0 else 1.0


def _sparsity(problems: Sequence[Problem], factors: Sequence[Factor]) -> float:
    """Σ_v η‖V‖_{2,1}."""
    return sum(
        problem.eta * float(factor.lengths.sum(dtype=np.float64))
        for problem, factor in zip(problems, factors, strict=True)
    )
