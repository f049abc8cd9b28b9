"""The iterations of one chunk: V, U, consensus and view weights in turn, until convergence."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stream_fs.selector.arrays import Working
from stream_fs.selector.kernels.dispatch import start_iteration
from stream_fs.selector.kernels.interface import Factors, Losses, ViewProblem
from stream_fs.selector.parameters import Params
from stream_fs.selector.steps import UStepConstants, alpha_step

LEAST_LOSS = 1e-12
"""Floor of a view's loss relative to its energy."""
LEAST_TERM = 1e-150
"""Floor of a first term's weight, by which V's penalty is divided."""
MOST_TERM = {np.dtype(np.float32): 1e12, np.dtype(np.float64): 1e150}
"""Largest weight of a first term, by the precision of U: no product with it can overflow."""
LEAST_ENERGY = 1e-150
"""Energy below which a view is treated as zero; j/s must stay finite."""


@dataclass(frozen=True, slots=True, eq=False)
class Fit:
    """The result of the iterations. `alpha` is over the views of this chunk and sums to 1."""

    factors: Factors
    losses: Losses
    alpha: Sequence[float]
    objective: tuple[float, ...]
    converged: bool


def iterate(
    problems: Sequence[ViewProblem],
    constants: UStepConstants,
    U: Working,
    start: Sequence[Working],
    alpha: Sequence[float],
    j: float,
    params: Params,
) -> Fit:
    """Minimise the chunk's objective (Eq. 8) in at most `max_iterations` iterations.

    Starts from `U` (views×N×K) and each view's V. `j` counts all instances so far, this chunk
    included. V and then U of every view, U*, α.
    """
    iteration = start_iteration(problems, constants, U, start, params.inner_updates)
    objective: list[float] = []
    converged = False
    a = term_weights(problems, alpha, j, params, U.dtype)
    while len(objective) < params.max_iterations and not converged:
        terms = iteration.step(a)
        losses = terms.losses
        if params.view_weights == "learned":
            alpha = alpha_step(_view_losses(problems, losses, params), params.lam)
        a = term_weights(problems, alpha, j, params, U.dtype)
        fit = sum(weight * loss for weight, loss in zip(a, losses.chunk, strict=True))
        objective.append(fit + terms.regularisers + terms.sparsity)
        if len(objective) > 1 and len(objective) >= params.min_iterations:
            change = abs(objective[-1] - objective[-2])
            converged = change <= params.tolerance * abs(objective[-2])
    return Fit(iteration.factors(), losses, alpha, tuple(objective), converged)


def term_weights(
    problems: Sequence[ViewProblem],
    alpha: Sequence[float],
    j: float,
    params: Params,
    precision: np.dtype[Any],
) -> list[float]:
    """Weight of each view's first term, limited to the range of the precision."""
    views = len(problems)
    weights = [
        term_weight(problem.total_energy, share, views, j, params)
        for problem, share in zip(problems, alpha, strict=True)
    ]
    return [min(weight, MOST_TERM[precision]) for weight in weights]


def term_weight(energy: float, share: float, views: int, j: float, params: Params) -> float:
    """α^λ, or (views·α)^λ·j/s to make energies comparable; for a view with energy s, share α."""
    weight = 1.0
    if params.view_weights == "learned":
        weight = _power(share * views if params.energy_scaling else share, params.lam)
    if params.energy_scaling and energy > LEAST_ENERGY:
        weight *= j / energy
    return max(weight, LEAST_TERM)


def _power(base: float, exponent: float) -> float:
    """A number above zero to a power; infinite where that is too large for a float."""
    try:
        return float(base**exponent)
    except OverflowError:
        return math.inf


def relative_losses(problems: Sequence[ViewProblem], losses: Losses) -> list[float]:
    """(s − 2⟨V,Q⟩ + ⟨VᵀV,R⟩)/s: the share of each view's energy that V leaves unexplained."""
    return [
        _relative_loss(problem, chunk + carried)
        for problem, chunk, carried in zip(problems, losses.chunk, losses.carried, strict=True)
    ]


def _view_losses(problems: Sequence[ViewProblem], losses: Losses, params: Params) -> list[float]:
    """The losses that determine α: of the present V over all data, or accumulated."""
    if params.loss == "exact":
        shares = relative_losses(problems, losses)
    else:
        shares = [
            _relative_loss(problem, chunk + problem.loss0)
            for problem, chunk in zip(problems, losses.chunk, strict=True)
        ]
    if params.energy_scaling:
        return shares
    return [share * p.total_energy for share, p in zip(shares, problems, strict=True)]


def _relative_loss(problem: ViewProblem, loss: float) -> float:
    """A loss relative to the view's energy, floored; 1 without energy."""
    energy = problem.total_energy
    return max(loss / energy, LEAST_LOSS) if energy > 0 else 1.0
