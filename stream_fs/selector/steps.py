"""The four steps of one iteration, one function each; none raises its subproblem's objective.

`a` stands for α^λ, or its scaled form (see `factorisation.term_weights`). The objective of a chunk,
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

    `lengths` are the row norms of V, which the caller has anyway. Never raises
    a(‖…‖² as a function of V) + η Σ_i (r_i − ε log(r_i + ε)), r the row norms.
    """
    below = by_column(V, R)
    penalty = min(eta / (2 * a), CEILINGS[V.dtype]) / (lengths + EPSILON)
    below += V * penalty[:, None]
    return _rescaled(V, Q, below)


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """What holds U in place, apart from the data; constant during a chunk. For all views together.

    `fit` and `pull` (views×N×1) are W̃ of the first term and βW̃ of the second, `still` is βW̃ + θD,
    `part` is βW̃ over its sum of all views; `norm` (N×1) is that sum. `springs` is θS of every view.
    All in the precision of U.
    """

    xi: float
    fit: Working
    pull: Working
    still: Working
    part: Working
    norm: Working
    springs: Sequence[scipy.sparse.csr_array[Any]]

    def repeated(self, clusters: int) -> Ties:
        """The same with all weights repeated along K: numpy is slow where it stretches them."""
        return replace(
            self,
            fit=np.repeat(self.fit, clusters, axis=-1),
            pull=np.repeat(self.pull, clusters, axis=-1),
            still=np.repeat(self.still, clusters, axis=-1),
            part=np.repeat(self.part, clusters, axis=-1),
            norm=np.repeat(self.norm, clusters, axis=-1),
        )


def ties(
    graphs: Sequence[Graph],
    fits: Sequence[Floats],
    qualities: Sequence[Floats],
    betas: Sequence[float],
    thetas: Sequence[float],
    xi: float,
    precision: Any = np.float64,
) -> Ties:
    """Gather the constants of the U step: per view its graph, W̃ of both terms (N,), β and θ."""

    def column(weights: Any) -> Working:
        return np.asarray(weights, precision)[..., None]

    pull = np.array(betas)[:, None] * np.array(qualities)
    smooth = [theta * graph.degrees for theta, graph in zip(thetas, graphs, strict=True)]
    norm = pull.sum(axis=0)
    return Ties(
        xi,
        fit=column(fits),
        pull=column(pull),
        still=column(pull + smooth),
        part=column(pull / np.where(norm > 0, norm, 1.0)),
        norm=column(norm),
        springs=[
            scaled(graph.S, theta, precision) for graph, theta in zip(graphs, thetas, strict=True)
        ],
    )


@dataclass(frozen=True, slots=True, eq=False)
class Indicators:
    """U of all views (views×N×K), with all that the next step and the objective need of it.

    `fitted` = W̃U, `held` = (βW̃ + θD)U and `pulled` = θSU + 2ξU are as large; `own` = UᵀU and
    `inner` = UᵀW̃U are (views×K×K).
    """

    U: Working
    fitted: Working
    held: Working
    pulled: Working
    own: Working
    inner: Working


def indicators(U: Working, tied: Ties) -> Indicators:
    """The products of U with its ties and with itself."""
    fitted = U * tied.fit
    transposed = U.transpose(0, 2, 1)
    pulled = np.array([springs @ own for springs, own in zip(tied.springs, U, strict=True)])
    pulled += U.dtype.type(2 * tied.xi) * U
    return Indicators(
        U,
        fitted,
        held=U * tied.still,
        pulled=pulled,
        own=transposed @ U,
        inner=transposed @ fitted,
    )


def drive(XV: Working, consensus: Working, a: Working, tied: Ties) -> Working:
    """aW̃XV + βW̃U*, the part of G that does not depend on U; `XV` is W̃XV, `a` (views×1×1)."""
    result = XV * a
    result += consensus * tied.pull
    return result


def u_step(now: Indicators, driving: Working, aVtV: Working, tied: Ties) -> Working:
    """U ← U ∘ sqrt(G/P) (Eq. 15), for all views at once; (views×N×K).

    G = aW̃XV + βW̃U* + θSU + 2ξU, of which `drive` gives the first half;
    P = aW̃UVᵀV + βW̃U + 2ξUUᵀU + θDU, with `aVtV` = aVᵀV (views×K×K).
    """
    above = driving + now.pulled
    below = now.fitted @ aVtV
    below += now.U @ (now.own * (2 * tied.xi))
    below += now.held
    return _rescaled(now.U, above, below)


def _rescaled(factor: Working, above: Working, below: Working) -> Working:
    """F ∘ sqrt(above / below) of a factor F, in the memory of `below`.

    Where a factor is exactly zero its denominator may be, too; infinity times zero would be NaN.
    """
    below += FLOORS[below.dtype]
    np.divide(above, below, out=below)
    np.sqrt(below, out=below)
    below *= factor
    return below


def consensus_step(U: Working, tied: Ties) -> Working:
    """U* = (Σβ_vW̃_v)⁻¹ Σβ_vW̃_vU_v (Eq. 20); (N×K). Every row has a view with weight 1."""
    return np.asarray((U * tied.part).sum(axis=0))


def alpha_step(losses: Sequence[float], lam: float) -> list[float]:
    """α_v ∝ L_v^{1/(1−λ)} (Eq. 21), in logarithms; positive, sums to 1."""
    logs = [math.log(max(loss, SMALLEST)) / (1 - lam) for loss in losses]
    largest = max(logs)
    shares = [max(math.exp(log - largest), LEAST_WEIGHT) for log in logs]
    total = sum(shares)
    return [share / total for share in shares]


def indicator_terms(now: Indicators, consensus: Working, tied: Ties) -> float:
    """Σ_v β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖².

    The first two terms are ⟨U, held − pulled⟩ + 2ξ‖U‖² − ⟨U*, norm∘U*⟩, because
    Σβ_vW̃_vU_v = norm∘U* (Eq. 20); the last is ξ(‖UᵀU‖² − 2‖U‖² + K) in every view.
    """
    tension = float(np.vdot(now.U, now.held)) - float(np.vdot(now.U, now.pulled))
    own = now.own.astype(np.float64)
    squared = float(np.einsum("vkk->", own))
    agreed = float(np.vdot(consensus, consensus * tied.norm))
    apart = float(np.vdot(own, own)) - 2 * squared + own.shape[0] * own.shape[1]
    return float(tension + 2 * tied.xi * squared - agreed + tied.xi * apart)


def orthogonality(own: Working) -> list[float]:
    """‖UᵀU − I‖ (Frobenius) of every view, from its UᵀU."""
    return [float(np.linalg.norm(view - np.eye(len(view)))) for view in own]
