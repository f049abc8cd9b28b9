"""The four steps of one iteration, one function each; none raises its subproblem's objective.

`a` stands for α^λ, or its scaled form (see `factorisation.term_weights`). The objective of a chunk,
with W̃ the squared weights and L the graph's Laplacian:

    Σ_v a ‖W(X − UVᵀ)‖² + β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖² + η‖V‖_{2,1}
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.selector.arrays import CEILINGS, FLOORS, Floats, Working, by_column
from stream_fs.selector.graph import Graph

EPSILON = 1e-12
"""ε of H = diag(1/(‖V(i,:)‖ + ε)), Eq. 12."""

SMALLEST = float(np.finfo(np.float64).tiny)
"""Least loss whose logarithm is taken."""
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
    below = by_column(V, R)
    penalty = V.dtype.type(min(eta / (2 * a), CEILINGS[V.dtype])) / (
        lengths + V.dtype.type(EPSILON)
    )
    below += V * penalty[:, None]
    return _rescaled(V, Q, below)


@dataclass(frozen=True, slots=True, eq=False)
class Ties:
    """What holds U in place, apart from the data; constant during a chunk. For all views together.

    `fit` and `pull` (views×N×K) are W̃ of the first term and βW̃ of the second, `still` is βW̃ + θD,
    all repeated along K; `norm` (N×K) = Σβ_vW̃_v. `springs` is θS + 2ξI, the views' blocks along
    the diagonal.
    """

    xi: float
    fit: Floats
    pull: Floats
    still: Floats
    norm: Floats
    springs: scipy.sparse.csr_array[Any]


def ties(
    graphs: Sequence[Graph],
    fits: Sequence[Floats],
    qualities: Sequence[Floats],
    betas: Sequence[float],
    thetas: Sequence[float],
    xi: float,
    clusters: int,
) -> Ties:
    """Gather the constants of the U step: per view its graph, W̃ of both terms (N,), β and θ."""

    def stack(weights: Sequence[Floats]) -> Floats:
        return np.repeat(np.array(weights)[:, :, None], clusters, axis=2)

    pulls = [beta * quality for beta, quality in zip(betas, qualities, strict=True)]
    pull = stack(pulls)
    smooth = [theta * graph.degrees for theta, graph in zip(thetas, graphs, strict=True)]
    blocks = [theta * graph.S for theta, graph in zip(thetas, graphs, strict=True)]
    edges = scipy.sparse.block_diag(blocks, format="csr")
    springs = edges + 2 * xi * scipy.sparse.eye_array(edges.shape[0], format="csr")
    return Ties(
        xi,
        stack(fits),
        pull,
        pull + stack(smooth),
        pull.sum(axis=0),
        scipy.sparse.csr_array(springs),
    )


def drive(XV: Floats, consensus: Floats, a: Floats, tied: Ties) -> Floats:
    """aW̃XV + βW̃U*, the part of G that does not depend on U; `XV` is W̃XV already, `a` (views,)."""
    result = XV * a[:, None, None]
    result += consensus * tied.pull
    return result


def pulled(U: Floats, tied: Ties) -> Floats:
    """θSU + 2ξU, the part of G that does."""
    flat = tied.springs @ U.reshape(-1, U.shape[2])
    return np.asarray(flat).reshape(U.shape)


def u_step(U: Floats, driving: Floats, pulling: Floats, aVtV: Floats, tied: Ties) -> Floats:
    """U ← U ∘ sqrt(G/P) (Eq. 15), for all views at once; (views×N×K).

    G = aW̃XV + βW̃U* + θSU + 2ξU, given as `drive` and `pulled`;
    P = aW̃UVᵀV + βW̃U + 2ξUUᵀU + θDU, with `aVtV` = aVᵀV (views×K×K).
    """
    above = driving + pulling
    below = U @ aVtV
    below *= tied.fit
    below += U @ (self_products(U) * (2 * tied.xi))
    below += U * tied.still
    return np.asarray(_rescaled(U, above, below), np.float64)


def self_products(U: Floats) -> Floats:
    """UᵀU of every view; (views×K×K)."""
    return U.transpose(0, 2, 1) @ U


def _rescaled(factor: Working, above: Working, below: Working) -> Working:
    """F ∘ sqrt(above / below) of a factor F, in the memory of `below`.

    Where a factor is exactly zero its denominator may be, too; infinity times zero would be NaN.
    """
    below += FLOORS[below.dtype]
    np.divide(above, below, out=below)
    np.sqrt(below, out=below)
    below *= factor
    return below


def consensus_step(U: Floats, tied: Ties) -> Floats:
    """U* = (Σβ_vW̃_v)⁻¹ Σβ_vW̃_vU_v (Eq. 20); (N×K). Every row has a view with weight 1."""
    return np.asarray((U * tied.pull).sum(axis=0) / tied.norm, np.float64)


def alpha_step(losses: Sequence[float], lam: float) -> list[float]:
    """α_v ∝ L_v^{1/(1−λ)} (Eq. 21), in logarithms; positive, sums to 1."""
    logs = [math.log(max(loss, SMALLEST)) / (1 - lam) for loss in losses]
    largest = max(logs)
    shares = [max(math.exp(log - largest), LEAST_WEIGHT) for log in logs]
    total = sum(shares)
    return [share / total for share in shares]


def indicator_terms(U: Floats, pulling: Floats, consensus: Floats, tied: Ties) -> float:
    """Σ_v β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖², with `pulling` = θSU + 2ξU.

    The first two terms are ⟨U, still∘U − pulling⟩ + 2ξ‖U‖² − ⟨U*, norm∘U*⟩, because
    Σβ_vW̃_vU_v = norm∘U* (Eq. 20).
    """
    own = U * tied.still
    own -= pulling
    grams = self_products(U)
    squared = float(np.einsum("vkk->", grams))
    grams -= np.eye(U.shape[2])
    return (
        float(np.vdot(U, own))
        + 2 * tied.xi * squared
        - float(np.vdot(consensus, consensus * tied.norm))
        + tied.xi * float(np.vdot(grams, grams))
    )


def orthogonality(U: Floats) -> list[float]:
    """‖UᵀU − I‖ (Frobenius) of every view."""
    apart = self_products(U) - np.eye(U.shape[2])
    return [float(np.linalg.norm(view)) for view in apart]
