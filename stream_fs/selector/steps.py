"""The four steps of one iteration, one function each; none increases its subproblem's objective.

`a` stands for α^λ, or its scaled form (see `iterations.term_weights`). The objective of a chunk,
with W̃ the squared weights and L the graph's Laplacian:

    Σ_v a ‖W(X − UVᵀ)‖² + β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖² + η‖V‖_{2,1}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.selector.arrays import CEILINGS, FLOORS, Floats, Working, by_column
from stream_fs.selector.graph import Graph, scaled

EPSILON = 1e-12
"""ε of H = diag(1/(‖V(i,:)‖ + ε)), Eq. 12."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""Least loss whose logarithm is taken."""
LEAST_WEIGHT = 1e-12
"""Floor of α relative to the largest: a view at exactly zero could never come back."""


def row_lengths(V: Working) -> Working:
    """‖V(i,:)‖, (d,), in the precision of V."""
    squares = np.einsum("ij,ij->i", V, V)
    return np.asarray(np.sqrt(squares, out=squares))


def v_step(V: Working, lengths: Working, Q: Working, R: Working, a: float, eta: float) -> Working:
    """V ← V ∘ sqrt(2aQ / (2aVR + ηHV)) (Eq. 12), in the precision of V; (d×K).

    `lengths` are the row norms of V, which the caller has anyway. Never increases
    a(‖…‖² as a function of V) + η Σ_i (r_i − ε log(r_i + ε)), r the row norms.
    """
    below = by_column(V, R)
    penalty = min(eta / (2 * a), CEILINGS[V.dtype]) / (lengths + EPSILON)
    below += V * penalty[:, None]
    return _rescaled(V, Q, below)


@dataclass(frozen=True, slots=True, eq=False)
class UStepConstants:
    """Inputs of the U step of all views that are constant during a chunk.

    `fit_weights` and `beta_W` (views×N×1) are W̃ of the first term and βW̃ of the second,
    `diagonal` is βW̃ + θD, `consensus_share` is βW̃ over its sum over all views, which is
    `beta_W_total` (N×1). `theta_S` is θS of every view. All in the precision of U.
    """

    xi: float
    fit_weights: Working
    beta_W: Working
    diagonal: Working
    consensus_share: Working
    beta_W_total: Working
    theta_S: Sequence[scipy.sparse.csr_array[Any]]

    def repeated(self, clusters: int) -> UStepConstants:
        """The same with all weights repeated along K, because broadcasting them is slow."""
        return replace(
            self,
            fit_weights=np.repeat(self.fit_weights, clusters, axis=-1),
            beta_W=np.repeat(self.beta_W, clusters, axis=-1),
            diagonal=np.repeat(self.diagonal, clusters, axis=-1),
            consensus_share=np.repeat(self.consensus_share, clusters, axis=-1),
            beta_W_total=np.repeat(self.beta_W_total, clusters, axis=-1),
        )


def u_step_constants(
    graphs: Sequence[Graph],
    fit_weights: Sequence[Floats],
    qualities: Sequence[Floats],
    betas: Sequence[float],
    thetas: Sequence[float],
    xi: float,
    precision: Any,
) -> UStepConstants:
    """The constants of the U step, from each view's graph, W̃ of both terms (N,), β and θ."""

    def column(weights: Any) -> Working:
        return np.asarray(weights, precision)[..., None]

    beta_W = np.array(betas)[:, None] * np.array(qualities)
    theta_D = [theta * graph.degrees for theta, graph in zip(thetas, graphs, strict=True)]
    total = beta_W.sum(axis=0)
    return UStepConstants(
        xi,
        fit_weights=column(fit_weights),
        beta_W=column(beta_W),
        diagonal=column(beta_W + theta_D),
        consensus_share=column(beta_W / np.where(total > 0, total, 1.0)),
        beta_W_total=column(total),
        theta_S=[
            scaled(graph.S, theta, precision) for graph, theta in zip(graphs, thetas, strict=True)
        ],
    )


@dataclass(frozen=True, slots=True, eq=False)
class UProducts:
    """U of all views (views×N×K), with all that the next step and the objective need of it.

    `WU` = W̃U, `diagonal_U` = (βW̃ + θD)U and `own_numerator` = θSU + 2ξU are as large; `UtU` = UᵀU
    and `UtWU` = UᵀW̃U are (views×K×K).
    """

    U: Working
    WU: Working
    diagonal_U: Working
    own_numerator: Working
    UtU: Working
    UtWU: Working


def u_products(U: Working, constants: UStepConstants) -> UProducts:
    """The products of U with its constants and with itself."""
    WU = U * constants.fit_weights
    Ut = U.transpose(0, 2, 1)
    own = np.array([S @ of_view for S, of_view in zip(constants.theta_S, U, strict=True)])
    own += U.dtype.type(2 * constants.xi) * U
    return UProducts(U, WU, U * constants.diagonal, own, UtU=Ut @ U, UtWU=Ut @ WU)


def fixed_numerator(
    XV: Working, consensus: Working, a: Working, constants: UStepConstants
) -> Working:
    """aW̃XV + βW̃U*, the part of G that does not depend on U; `XV` is W̃XV, `a` (views×1×1)."""
    result = XV * a
    result += consensus * constants.beta_W
    return result


def u_step(now: UProducts, fixed: Working, aVtV: Working, constants: UStepConstants) -> Working:
    """U ← U ∘ sqrt(G/P) (Eq. 15), for all views at once; (views×N×K).

    G = aW̃XV + βW̃U* + θSU + 2ξU, of which `fixed_numerator` gives the first half;
    P = aW̃UVᵀV + βW̃U + 2ξUUᵀU + θDU, with `aVtV` = aVᵀV (views×K×K).
    """
    above = fixed + now.own_numerator
    below = now.WU @ aVtV
    below += now.U @ (now.UtU * (2 * constants.xi))
    below += now.diagonal_U
    return _rescaled(now.U, above, below)


def _rescaled(factor: Working, above: Working, below: Working) -> Working:
    """F ∘ sqrt(above / below) of a factor F, in the memory of `below`.

    The floor avoids infinity times zero, where a factor and its denominator are exactly zero.
    """
    below += FLOORS[below.dtype]
    np.divide(above, below, out=below)
    np.sqrt(below, out=below)
    below *= factor
    return below


def consensus_step(U: Working, constants: UStepConstants) -> Working:
    """U* = (Σβ_vW̃_v)⁻¹ Σβ_vW̃_vU_v (Eq. 20); (N×K). Every row has a view with weight 1."""
    return np.asarray((U * constants.consensus_share).sum(axis=0))


def alpha_step(losses: Sequence[float], lam: float) -> list[float]:
    """α_v ∝ L_v^{1/(1−λ)} (Eq. 21), in logarithms; positive, sums to 1."""
    logs = [math.log(max(loss, SMALLEST)) / (1 - lam) for loss in losses]
    largest = max(logs)
    shares = [max(math.exp(log - largest), LEAST_WEIGHT) for log in logs]
    total = sum(shares)
    return [share / total for share in shares]


def regularisers(now: UProducts, consensus: Working, constants: UStepConstants) -> float:
    """Σ_v β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖².

    The first two terms are ⟨U, diagonal_U − own_numerator⟩ + 2ξ‖U‖² − ⟨U*, (ΣβW̃)U*⟩, because
    Σβ_vW̃_vU_v = (ΣβW̃)U* (Eq. 20); the last is ξ(‖UᵀU‖² − 2‖U‖² + K) in every view.
    """
    tension = float(np.vdot(now.U, now.diagonal_U)) - float(np.vdot(now.U, now.own_numerator))
    UtU = now.UtU.astype(np.float64)
    squared = float(np.einsum("vkk->", UtU))
    agreed = float(np.vdot(consensus, consensus * constants.beta_W_total))
    orthonormality = float(np.vdot(UtU, UtU)) - 2 * squared + UtU.shape[0] * UtU.shape[1]
    return float(tension + 2 * constants.xi * squared - agreed + constants.xi * orthonormality)


def orthogonality(UtU: Working) -> list[float]:
    """‖UᵀU − I‖ (Frobenius) of every view."""
    return [float(np.linalg.norm(view - np.eye(len(view)))) for view in UtU]
