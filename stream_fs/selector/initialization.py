"""The start of a chunk: clusters that persist from chunk to chunk, and random factors.

The first chunk is clustered by its graphs; every later row is assigned to the clusters so far by
its correlation with their means, view by view, averaged over the views that it has. P (N×K) is a
soft assignment: rows are non-negative and sum to 1.
"""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.cluster.vq import kmeans2

from stream_fs.selector.arrays import Floats, Indices, Scaled, Working, cross, times
from stream_fs.selector.eigenvectors import leading_eigenvectors
from stream_fs.selector.graph import Graph

SHARPNESS = 3.0
"""Factor in softmax(3·A)."""
HARDNESS = 0.9
"""Weight of the cluster that the first chunk's k-means chose; the rest is spread evenly."""
STARTS = 5
"""Starts of k-means, the best of which is kept."""


CANCELLED = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}
"""Share of its terms, by precision, below which a squared length is only rounding error."""


@dataclass(frozen=True, slots=True, eq=False)
class Profile:
    """The carried sums of a view's clusters: `C` (K), `Z` (d×K), `sum` (d), `n`."""

    C: Floats
    Z: Floats
    sum: Floats
    n: float


@dataclass(frozen=True, slots=True, eq=False)
class PresentRows:
    """A view's present rows of this chunk (n × d), their positions and their sum (d).

    `gram` (n×n) has the products of y = x̃ − `centre` (d), a point near which the rows lie.
    """

    rows: Scaled
    at: Indices
    sum: Floats
    centre: Working
    gram: Working


@dataclass(frozen=True, slots=True, eq=False)
class Clusters:
    """A view's clusters: `C` (K), `n`, and products with the rows of a chunk.

    B (d×(K+1)) has the clusters' sums ΣPy and, in its last column, the view's sum Σy. `seen` is
    BᵀYᵀ ((K+1)×n), `among` is BᵀB.
    """

    C: Floats
    n: float
    seen: Floats
    among: Floats


def spectral_start(graphs: Sequence[Graph], clusters: int, source: np.random.Generator) -> Floats:
    """P of the first chunk: k-means on the leading eigenvectors of D^-½(ΣS_v)D^-½."""
    S = graphs[0].S
    for graph in graphs[1:]:
        S = S + graph.S
    degrees = np.asarray(S.sum(axis=1), np.float64).ravel()
    scale = 1 / np.sqrt(np.maximum(degrees, 1e-12 * max(degrees.max(), 1.0)))
    vectors = leading_eigenvectors(S.multiply(scale[:, None]).multiply(scale), clusters, source)
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    labels = _kmeans(vectors / np.where(lengths > 0, lengths, 1.0), clusters, source)
    P = np.full((len(labels), clusters), (1 - HARDNESS) / clusters)
    P[np.arange(len(labels)), labels] += HARDNESS
    return P


def _kmeans(points: Floats, clusters: int, source: np.random.Generator) -> Any:
    """Labels of the best of several k-means runs, by the sum of squared distances."""
    best: Any = None
    least = np.inf
    with warnings.catch_warnings():
        # An empty cluster keeps its centre, and the sum of squares accounts for that.
        warnings.filterwarnings("ignore", "One of the clusters is empty", UserWarning)
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


def clusters_before(view: PresentRows, stored: Profile) -> Clusters:
    """The clusters so far, by one product with the chunk's rows."""
    centre = view.centre.astype(np.float64)
    B = np.empty((len(stored.C) + 1, len(centre)))
    np.subtract(stored.Z.T, stored.C[:, None] * centre, out=B[:-1])
    np.subtract(stored.sum, stored.n * centre, out=B[-1])
    seen = times(view.rows, B.T).T - (B @ centre)[:, None]
    return Clusters(stored.C, stored.n, np.ascontiguousarray(seen), B @ B.T)


def clusters_with(before: Clusters, view: PresentRows, P: Floats) -> Clusters:
    """The clusters with this chunk's rows, weighted by P.

    B becomes B + YᵀP̃ with P̃ = [P, 1], so that BᵀYᵀ gains P̃ᵀYYᵀ.
    """
    share = np.ones((P.shape[1] + 1, len(view.at)))
    share[:-1] = P.T[:, view.at]
    seen = before.seen + _spread(view, share.astype(view.gram.dtype))
    among = before.among + share @ seen.T + before.seen @ share.T
    return Clusters(before.C + share[:-1].sum(axis=1), before.n + len(view.at), seen, among)


def _spread(view: PresentRows, share: Working) -> Working:
    """P̃ᵀYYᵀ, ((K+1)×n): with n×n products that are known, or with the rows where that is less."""
    n, d = view.rows.shape
    if n <= 2 * d or not isinstance(view.rows, np.ndarray):
        return share @ view.gram
    Y = view.rows - view.centre if view.centre.any() else view.rows
    return times(Y, cross(Y, share.T)).T


def assign(
    size: int, evidence: Sequence[PresentRows], clusters: Sequence[Clusters], count: int
) -> Floats:
    """P = softmax(3·A) of the chunk's rows to the `count` clusters of every view; (N×K).

    A: cosine of the centred row with the centred cluster means, less the row's mean over clusters,
    divided by its RMS over the chunk, averaged over the row's views that have clusters.
    """
    total = np.zeros((count, size))  # column-major: sums over clusters are faster
    views = np.zeros(size)
    for view, known in zip(evidence, clusters, strict=True):
        if known.n > 0 and len(view.at):
            total[:, view.at] += _affinity(view, known)
            views[view.at] += 1
    total *= SHARPNESS / np.maximum(views, 1.0)
    total -= total.max(axis=0)
    np.exp(total, out=total)
    total /= total.sum(axis=0)
    return np.ascontiguousarray(total.T)


def _affinity(view: PresentRows, known: Clusters) -> Floats:
    """Standardised cosines of the cluster means with one view's present rows; (K×n)."""
    filled = 1e-12 * known.n < known.C
    scale = np.append(np.where(filled, 1 / np.where(filled, known.C, 1.0), 0.0), 1 / known.n)
    # Products with the cluster means z and, last, with the view's mean μ.
    seen, among = known.seen * scale[:, None], known.among * scale * scale[:, None]
    z_y, mu_y = seen[:-1], seen[-1]
    z_z, z_mu, mu_mu = np.diagonal(among)[:-1], among[:-1, -1], among[-1, -1]
    y_y = np.diagonal(view.gram).astype(np.float64)
    least = CANCELLED[view.gram.dtype]
    rows = _inverse_lengths(y_y, mu_y, mu_mu, least)
    means = _inverse_lengths(z_z, z_mu, mu_mu, least) * filled
    # ⟨z − μ, y − μ⟩
    cosines = z_y - mu_y
    cosines += (mu_mu - z_mu)[:, None]
    cosines *= means[:, None]
    cosines *= rows
    cosines -= cosines.mean(axis=0)
    rms = np.sqrt(np.vdot(cosines, cosines) / cosines.size)
    return np.asarray(cosines / rms if rms > 0 else np.zeros_like(cosines), np.float64)


def _inverse_lengths(a_a: Floats, a_b: Floats, b_b: float, least: float) -> Floats:
    """1/‖a − b‖ from the products of the a and b; 0 where they differ by rounding alone."""
    squares = a_a - 2 * a_b + b_b
    clear = squares > least * np.maximum(np.maximum(a_a, b_b), 0.0)
    return np.asarray(clear / np.sqrt(np.where(clear, squares, 1.0)), np.float64)


def indicator(P: Floats) -> Floats:
    """U that starts the iterations: P + 1e-3, columns to unit length."""
    U = P + 1e-3
    return np.asarray(U / np.linalg.norm(U, axis=0), np.float64)


def first_factors(Q: Floats, R: Floats) -> Floats:
    """V of a view seen for the first time: ridge solution of V R = Q, made positive; (d×K).

    The ridge is 1e-3·tr(R)/K; if R is zero, so is V.
    """
    k, trace = len(R), np.trace(R)
    if not trace > 0:
        return np.zeros_like(Q)
    ridge = R / trace + (1e-3 / k) * np.eye(k)
    solved = np.linalg.solve(ridge, Q.T / trace).T
    return np.asarray(np.maximum(solved, 0.0) + 1e-3 * Q.mean(), np.float64)


def generator(seed: int, *key: str | int) -> np.random.Generator:
    """A generator for one purpose, independent of those with any other key."""
    text = "\x1f".join([str(seed), *map(str, key)])
    return np.random.Generator(
        np.random.PCG64(int.from_bytes(hashlib.sha256(text.encode()).digest(), "little"))
    )


def signs(source: np.random.Generator, rows: int, width: int) -> Working:
    """Independent ±1 in single precision, (rows × width)."""
    bits = np.unpackbits(np.frombuffer(source.bytes((rows * width + 7) // 8), np.uint8))
    return (2 * bits[: rows * width].astype(np.float32) - 1).reshape(rows, width)
