"""Clusters that last from chunk to chunk: where the consensus of a chunk starts.

The first chunk is clustered by its graphs; every later row is assigned to the clusters so far by
its correlation with their means, view by view, averaged over the views that it has. P (N×K) is a
soft assignment: rows are non-negative and sum to 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.cluster.vq import kmeans2
from scipy.sparse.linalg import eigsh

from stream_fs.selector.arrays import Floats, Indices, Rows, cross, times
from stream_fs.selector.graph import Graph

SHARPNESS = 3.0
"""Factor in softmax(3·A)."""
HARDNESS = 0.9
"""Weight of the cluster that the first chunk's k-means chose; the rest is spread evenly."""
STARTS = 5
"""Starts of k-means, the best of which is kept."""
DENSE_ROWS = 1000
"""Up to here all eigenvectors are cheaper than an iterative solver."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """What `assign` needs of one view, summed so far: `C` (K), `Z` (d×K), `sum` (d), `n`.

    `Z` is stored by column, like V.
    """

    C: Floats
    Z: Floats
    sum: Floats
    n: float


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """A view's present rows of this chunk (n × d), their positions, squares ‖x‖² and sum."""

    rows: Rows
    at: Indices
    squares: Floats
    sum: Floats


def spectral_start(graphs: Sequence[Graph], clusters: int, source: np.random.Generator) -> Floats:
    """P of the first chunk: k-means on the leading eigenvectors of D^-½(ΣS_v)D^-½."""
    S = graphs[0].S
    for graph in graphs[1:]:
        S = S + graph.S
    degrees = np.asarray(S.sum(axis=1), np.float64).ravel()
    scale = 1 / np.sqrt(np.maximum(degrees, 1e-12 * max(degrees.max(), 1.0)))
    vectors = _leading_eigenvectors(S.multiply(scale[:, None]).multiply(scale), clusters, source)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = _kmeans(vectors / np.where(lengths > 0, lengths, 1.0), clusters, source)
    P = np.full((len(labels), clusters), (1 - HARDNESS) / clusters)
    P[np.arange(len(labels)), labels] += HARDNESS
    return P


def _leading_eigenvectors(M: Any, count: int, source: np.random.Generator) -> Floats:
    size = M.shape[0]
    if size <= DENSE_ROWS or count >= size - 1:
        first = max(size - count, 0)
        _, vectors = scipy.linalg.eigh(M.toarray(), subset_by_index=[first, size - 1])
    else:
        _, vectors = eigsh(scipy.sparse.csr_array(M), k=count, which="LA", v0=source.random(size))
    return np.asarray(vectors, np.float64)


def _kmeans(points: Floats, clusters: int, source: np.random.Generator) -> Any:
    """Labels of the best of several k-means runs, by the sum of squared distances."""
    best: Any = None
    least = np.inf
    for _ in range(STARTS):
        centres = _spread_points(points, clusters, source)
        centres, labels = kmeans2(points, centres, iter=30, minit="matrix", missing="warn")
        inertia = float(((points - centres[labels]) ** 2).sum())
        if inertia < least:
            best, least = labels, inertia
    return best


def _spread_points(points: Floats, count: int, source: np.random.Generator) -> Floats:
    """Starting centres far from one another (k-means++), drawn without replacement."""
    chosen = [int(source.integers(len(points)))]
    distance = ((points - points[chosen[0]]) ** 2).sum(axis=1)
    for _ in range(count - 1):
        mass = distance.copy()
        mass[chosen] = 0.0
        if not mass.sum() > 0:
            mass = np.ones(len(points))
            mass[chosen] = 0.0
        chosen.append(int(source.choice(len(points), p=mass / mass.sum())))
        distance = np.minimum(distance, ((points - points[chosen[-1]]) ** 2).sum(axis=1))
    return points[chosen]


def assign(
    size: int,
    evidence: Sequence[Evidence],
    profiles: Sequence[Profile],
    clusters: int,
) -> Floats:
    """P = softmax(3·A) of the chunk's rows to the clusters that the profiles describe; (N×K).

    A: cosine of the centred row with the centred cluster means, less the row's mean over clusters,
    divided by its RMS over the chunk, averaged over the row's views. A view whose profile is empty
    says nothing.
    """
    total = np.zeros((size, clusters))
    views = np.zeros(size)
    for view, profile in zip(evidence, profiles, strict=True):
        if profile.n > 0 and len(view.at):
            total[view.at] += _affinity(view, profile)
            views[view.at] += 1
    total /= np.maximum(views, 1.0)[:, None]
    total *= SHARPNESS
    total -= total.max(axis=1, keepdims=True)
    np.exp(total, out=total)
    total /= total.sum(axis=1, keepdims=True)
    return total


def _affinity(view: Evidence, profile: Profile) -> Floats:
    """Standardised cosines of one view's present rows with the cluster means; (n×K)."""
    mean = profile.sum / profile.n
    filled = 1e-12 * profile.n < profile.C
    means = profile.Z / np.where(filled, profile.C, 1.0)
    means -= mean[:, None]
    means[:, ~filled] = 0.0
    lengths = np.sqrt(np.einsum("ij,ij->j", means, means))
    means /= np.where(lengths > 0, lengths, 1.0)
    # One product gives x·(centred means) and x·μ together.
    factors = np.empty((len(mean), len(lengths) + 1), view.rows.dtype, order="F")
    factors[:, :-1], factors[:, -1] = means, mean
    products = times(view.rows, factors)
    cosines = products[:, :-1] - mean @ means
    apart = np.maximum(view.squares - 2 * products[:, -1] + mean @ mean, 0.0)
    away = apart > 1e-12 * np.maximum(view.squares, mean @ mean)
    cosines /= np.sqrt(np.where(away, apart, 1.0))[:, None]
    cosines[~away] = 0.0
    cosines -= cosines.mean(axis=1, keepdims=True)
    rms = np.sqrt(np.mean(cosines**2))
    return np.asarray(cosines / rms if rms > 0 else np.zeros_like(cosines), np.float64)


def profile_with(stored: Profile, view: Evidence, P: Floats) -> Profile:
    """The stored sums with those of this chunk added, its rows weighted by P."""
    share = P[view.at]
    return Profile(
        C=stored.C + share.sum(axis=0),
        Z=stored.Z + cross(view.rows, share),
        sum=stored.sum + view.sum,
        n=stored.n + len(view.at),
    )


def indicator(P: Floats) -> Floats:
    """U that starts the iterations: P + 1e-3, columns to unit length."""
    U = P + 1e-3
    return np.asarray(U / np.linalg.norm(U, axis=0), np.float64)


def first_factors(Q: Floats, R: Floats) -> Floats:
    """V of a view seen for the first time: ridge solution of V R = Q, made positive; (d×K).

    The ridge is 1e-3·tr(R)/K; where there is nothing to solve for, V is zero.
    """
    k, trace = len(R), np.trace(R)
    if not trace > 0:
        return np.zeros_like(Q)
    ridge = R / trace + (1e-3 / k) * np.eye(k)
    solved = np.linalg.solve(ridge, Q.T / trace).T
    return np.asarray(np.maximum(solved, 0.0) + 1e-3 * Q.mean(), np.float64)
