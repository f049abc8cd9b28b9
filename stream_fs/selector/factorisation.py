"""The iterations of one chunk: V, U, consensus and view weights in turn, until they settle."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.selector.arrays import Floats, Working
from stream_fs.selector.graph import Graph
from stream_fs.selector.imputation import Imputed, product, transposed_product
from stream_fs.selector.params import Params
from stream_fs.selector.updates import (
    Coefficients,
    alpha_step,
    consensus_step,
    row_lengths,
    u_step,
    v_step,
)

LEAST_LOSS = 1e-12
"""Floor of a view's loss relative to its energy."""


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One view's data of a chunk and what is carried into it; constant during the iterations.

    `energy` is this chunk's Σw²‖x‖²; `R0` (K×K), `Q0` (d×K, in the precision of the rows),
    `energy0` and `loss0` are the sums before the chunk.
    """

    data: Imputed
    graph: Graph
    energy: float
    R0: Floats
    Q0: Working
    energy0: float
    loss0: float
    beta: float
    theta: float
    eta: float

    @property
    def total_energy(self) -> float:
        """Energy of everything so far, this chunk included."""
        return self.energy0 + self.energy


@dataclass(slots=True, eq=False)
class Factors:
    """One view's U (N×K) and V (d×K, in the precision of the rows), and what follows from them.

    `lengths` are the row norms of V, `inner` = UᵀW̃U of this chunk, `loss` = ‖W(X − UVᵀ)‖² of this
    chunk, `carried_loss` that of V over all earlier data.
    """

    U: Floats
    V: Working
    lengths: Working
    inner: Floats
    loss: float = 0.0
    carried_loss: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """Where the iterations ended; `alpha` is over the views of this chunk and sums to 1."""

    factors: Sequence[Factors]
    consensus: Floats
    alpha: Floats
    objective: tuple[float, ...]
    converged: bool


def factors(problem: Problem, U: Floats, V: Working) -> Factors:
    """A start of the iterations for one view."""
    V = V.astype(problem.data.rows.dtype)
    return Factors(U, V, row_lengths(V), _inner(problem, U))


def iterate(
    problems: Sequence[Problem], start: Sequence[Factors], alpha: Floats, j: float, params: Params
) -> Fit:
    """Minimise the chunk's objective (Eq. 8), at most `max_iterations` times around.

    `j` counts all instances so far, this chunk included. Two products with each view's rows per
    iteration.
    """
    current = list(start)
    betas = [problem.beta for problem in problems]
    qualities = [problem.data.quality for problem in problems]
    consensus = consensus_step([part.U for part in current], qualities, betas)
    objective: list[float] = []
    converged = False
    while len(objective) < params.max_iterations and not converged:
        weights = term_weights(problems, alpha, j, params)
        for problem, part, a in zip(problems, current, weights, strict=True):
            _update_view(problem, part, consensus, float(a), params)
        consensus = consensus_step([part.U for part in current], qualities, betas)
        if params.view_weights == "learned":
            alpha = alpha_step(_view_losses(problems, current, params), params.lam)
        weights = term_weights(problems, alpha, j, params)
        objective.append(_objective(problems, current, consensus, weights, params.xi))
        if len(objective) > 1 and len(objective) >= params.min_iterations:
            change = abs(objective[-1] - objective[-2])
            converged = change <= params.tolerance * abs(objective[-2])
    return Fit(current, consensus, alpha, tuple(objective), converged)


def term_weights(problems: Sequence[Problem], alpha: Floats, j: float, params: Params) -> Floats:
    """Weight of each view's first term: α^λ, or (views·α)^λ·j/s so that energies compare."""
    powers = np.ones(len(problems))
    if params.view_weights == "learned":
        scale = len(problems) if params.energy_scaling else 1.0
        powers = (scale * alpha) ** params.lam
    if params.energy_scaling:
        energies = np.array([problem.total_energy for problem in problems])
        powers = powers * np.where(energies > 0, j / np.where(energies > 0, energies, 1.0), 1.0)
    return np.maximum(powers, np.sqrt(np.finfo(np.float64).tiny))


def _update_view(
    problem: Problem, part: Factors, consensus: Floats, a: float, params: Params
) -> None:
    """V, then U, each `inner_updates` times on the same products with the rows."""
    data = problem.data
    R = problem.R0 + part.inner
    Q = transposed_product(data, part.U)
    Q += problem.Q0  # Eq. 11
    for _ in range(params.inner_updates):
        part.V = v_step(part.V, part.lengths, Q, R.astype(Q.dtype), a, problem.eta)
        part.lengths = row_lengths(part.V)
    XV = product(data, part.V)
    VtV = np.asarray(part.V.T @ part.V, np.float64)
    weight = Coefficients(a, problem.beta, problem.theta, params.xi)
    for _ in range(params.inner_updates):
        part.U = u_step(part.U, XV, VtV, consensus, data.fit, data.quality, problem.graph, weight)
    part.inner = _inner(problem, part.U)
    part.loss = problem.energy - 2 * float(np.vdot(XV, part.U)) + float(np.vdot(VtV, part.inner))
    carried = float(np.vdot(part.V, problem.Q0))
    part.carried_loss = problem.energy0 - 2 * carried + float(np.vdot(VtV, problem.R0))


def _inner(problem: Problem, U: Floats) -> Floats:
    """UᵀW̃U, (K×K)."""
    return U.T @ (problem.data.fit[:, None] * U)


def relative_loss(problem: Problem, part: Factors) -> float:
    """(s − 2⟨V,Q⟩ + ⟨VᵀV,R⟩)/s: the share of the view's energy that its V leaves unexplained."""
    energy = problem.total_energy
    return max((part.loss + part.carried_loss) / energy, LEAST_LOSS) if energy > 0 else 1.0


def _view_losses(problems: Sequence[Problem], current: Sequence[Factors], params: Params) -> Floats:
    """What α follows, per view: the loss of the present V over all data, or accumulated losses."""
    losses = []
    for problem, part in zip(problems, current, strict=True):
        energy = problem.total_energy
        if params.loss == "exact":
            loss = relative_loss(problem, part)
        else:
            loss = max((part.loss + problem.loss0) / energy, LEAST_LOSS) if energy > 0 else 1.0
        losses.append(loss if params.energy_scaling else loss * energy)
    return np.array(losses)


def _objective(
    problems: Sequence[Problem],
    current: Sequence[Factors],
    consensus: Floats,
    weights: Floats,
    xi: float,
) -> float:
    """The terms of this chunk, the orthogonality penalty included."""
    total = 0.0
    for problem, part, a in zip(problems, current, weights, strict=True):
        U = part.U
        apart = U - consensus
        gram = U.T @ U
        gram.flat[:: len(gram) + 1] -= 1.0
        smooth = float(problem.graph.degrees @ np.einsum("ij,ij->i", U, U)) - float(
            np.vdot(U, problem.graph.S @ U)
        )
        total += (
            float(a) * part.loss
            + problem.beta * float(problem.data.quality @ np.einsum("ij,ij->i", apart, apart))
            + problem.theta * smooth
            + xi * float(np.vdot(gram, gram))
            + problem.eta * float(part.lengths.sum(dtype=np.float64))
        )
    return total
