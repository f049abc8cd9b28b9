"""The four steps of one iteration, one function each; none raises its subproblem's objective.

Weights of the terms: `a` stands for α^λ (or its scaled form, see `weight`). The objective of a
chunk, with W̃ the squared weights and L the graph's Laplacian:

    Σ_v a ‖W(X − UVᵀ)‖² + β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖² + η‖V‖_{2,1}
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stream_fs.selector.arrays import Floats, Working
from stream_fs.selector.graph import Graph

EPSILON = 1e-12
"""ε of H = diag(1/(‖V(i,:)‖ + ε)), Eq. 12."""

LEAST_WEIGHT = 1e-12
"""Floor of α relative to the largest: a view at exactly zero could never come back."""


def row_lengths(V: Working) -> Working:
    """‖V(i,:)‖, (d,), in the precision of V."""
    return np.asarray(np.sqrt(np.einsum("ij,ij->i", V, V)))


def v_step(V: Working, lengths: Working, Q: Working, R: Working, a: float, eta: float) -> Working:
    """V ← V ∘ sqrt(2aQ / (2aVR + ηHV)) (Eq. 12), in the precision of V; (d×K).

    `lengths` are the row norms of V, which the caller has anyway. Never raises
    a(‖…‖² as a function of V) + η Σ_i (r_i − ε log(r_i + ε)), r the row norms.
    """
    below = V @ R
    penalty = (eta / (2 * a)) / (lengths.astype(np.float64) + EPSILON)
    np.minimum(penalty, np.sqrt(np.finfo(V.dtype).max), out=penalty)
    below += V * penalty.astype(V.dtype)[:, None]
    np.maximum(below, _floor(Q), out=below)
    np.divide(Q, below, out=below)
    np.sqrt(below, out=below)
    below *= V
    return below


def _floor(above: Working) -> Any:
    """Least denominator by which any entry can be divided without overflow.

    Where a factor is exactly zero (a feature whose first chunk was all zeros, say) its denominator
    is zero, too, and infinity times zero would be NaN.
    """
    return np.finfo(above.dtype).tiny * max(above.max(), above.dtype.type(1.0))


@dataclass(frozen=True, slots=True, eq=False)
class Coefficients:
    """A view's weights in the U step: `a`, β, θ, ξ."""

    a: float
    beta: float
    theta: float
    xi: float


def u_step(
    U: Floats,
    XV: Floats,
    VtV: Floats,
    consensus: Floats,
    fit: Floats,
    quality: Floats,
    graph: Graph,
    weight: Coefficients,
) -> Floats:
    """U ← U ∘ sqrt(G/P) (Eq. 15); (N×K).

    G = a W̃XV + βW̃U* + 2ξU + θSU, P = a W̃UVᵀV + βW̃U + 2ξUUᵀU + θDU. `XV` is W̃XV already; `fit` and
    `quality` (N,) are W̃ of the first and of the second term.
    """
    pull = (weight.beta * quality)[:, None]
    above = weight.a * XV
    above += pull * consensus
    above += (2 * weight.xi) * U
    above += weight.theta * (graph.S @ U)
    below = (weight.a * fit)[:, None] * (U @ VtV)
    below += U @ ((2 * weight.xi) * (U.T @ U))
    below += (pull + (weight.theta * graph.degrees)[:, None]) * U
    np.maximum(below, _floor(above), out=below)
    np.divide(above, below, out=below)
    np.sqrt(below, out=below)
    below *= U
    return below


def consensus_step(
    indicators: Sequence[Floats], qualities: Sequence[Floats], betas: Sequence[float]
) -> Floats:
    """U* = (Σβ_vW̃_v)⁻¹ Σβ_vW̃_vU_v (Eq. 20); (N×K). Every row has a view with weight 1."""
    total = np.zeros_like(indicators[0])
    norm = np.zeros(len(total))
    for U, quality, beta in zip(indicators, qualities, betas, strict=True):
        pull = beta * quality
        total += pull[:, None] * U
        norm += pull
    total /= norm[:, None]
    return total


def alpha_step(losses: Floats, lam: float) -> Floats:
    """α_v ∝ L_v^{1/(1−λ)} (Eq. 21), in logarithms; positive, sums to 1."""
    logs = np.log(np.maximum(losses, np.finfo(np.float64).tiny)) / (1 - lam)
    alpha = np.maximum(np.exp(logs - logs.max()), LEAST_WEIGHT)
    return np.asarray(alpha / alpha.sum(), np.float64)


def orthogonality(U: Floats) -> float:
    """‖UᵀU − I‖ (Frobenius)."""
    return float(np.linalg.norm(U.T @ U - np.eye(U.shape[1])))
