"""The default preset with explicit imputation: instances × features, obvious loops.

Follows the nine points of the default preset.  Two things are handed in, so that nothing here is
random: ``P`` of the first chunk (the spectral start) and the signs ``G`` of the sketch.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from .algorithm1 import (
    TINY,
    Mask,
    Matrix,
    admit,
    chunk_loss,
    converged,
    impute,
    indicator_terms,
    neighbour_graph,
    row_norms,
    update_consensus,
    update_U,
    update_V,
    view_shares,
)

Vector = NDArray[np.float64]


# --- 1. the space -------------------------------------------------------------------------------


def unit_rows(X: Matrix) -> Matrix:
    """Rows scaled to unit norm; a row of zeros stays a row of zeros."""
    result = np.zeros(X.shape)
    for i, row in enumerate(X):
        norm = np.linalg.norm(row)
        if norm > 0:
            result[i] = row / norm
    return result


def scale(X: Matrix, present: Mask, transform: str, lo: Vector, hi: Vector) -> Matrix:
    """``X̃`` (N × d), zero where the row is missing; ``lo`` and ``hi`` include this chunk."""
    result = np.zeros(X.shape)
    rows = X[present]
    if transform == "minmax":
        spread = hi - lo
        rows = np.where(spread > 0, (rows - lo) / np.where(spread > 0, spread, 1.0), 0.0)
        rows = unit_rows(np.clip(rows, 0.0, 1.0))
    elif transform == "unit":
        rows = unit_rows(rows)
    elif transform != "none":
        raise ValueError(f"unknown transform {transform!r}")
    if (rows < 0).any():
        raise ValueError("values must not be negative")
    result[present] = rows
    return result


# --- 3. assignment to the stored clusters -------------------------------------------------------


@dataclass
class Sums:
    """What ``assign`` needs of one view: ``Z`` (d × K), ``C`` (K), ``m`` (d) and ``n``."""

    Z: Matrix
    C: Vector
    m: Vector
    n: float


def weighted_sums(X: Matrix, present: Mask, P: Matrix) -> Sums:
    """The sums of one view over the present rows of one chunk, weighted by ``P`` (N × K)."""
    rows, shares = X[present], P[present]
    return Sums(rows.T @ shares, shares.sum(axis=0), rows.sum(axis=0), float(present.sum()))


def centred_means(sums: Sums) -> Matrix:
    """``Z_k/C_k − μ`` as columns (d × K); zero for a cluster without mass."""
    mu = sums.m / sums.n
    means = np.zeros(sums.Z.shape)
    for k, mass in enumerate(sums.C):
        if mass > TINY:
            means[:, k] = sums.Z[:, k] / mass - mu
    return means


def cosine(a: Vector, b: Vector) -> float:
    norms = float(np.linalg.norm(a) * np.linalg.norm(b))
    return float(a @ b) / norms if norms > 0 else 0.0


def assign(X: Sequence[Matrix], present: Sequence[Mask], sums: Sequence[Sums]) -> Matrix:
    """``P`` (N × K): soft clusters of the rows by the cosine to the centred cluster means."""
    N, K = len(present[0]), len(sums[0].C)
    A = np.zeros((N, K))
    count = np.zeros(N)
    for x, mask, stored in zip(X, present, sums, strict=True):
        if stored.n <= 0 or not mask.any():
            continue
        mu = stored.m / stored.n
        means = centred_means(stored)
        B = np.array([[cosine(row - mu, means[:, k]) for k in range(K)] for row in x[mask]])
        B -= B.mean(axis=1, keepdims=True)
        rms = float(np.sqrt((B**2).mean()))
        A[mask] += B / rms if rms > 0 else 0.0
        count[mask] += 1
    A /= np.maximum(count, 1)[:, None]
    powers = np.exp(3 * A - (3 * A).max(axis=1, keepdims=True))
    return np.asarray(powers / powers.sum(axis=1, keepdims=True))


# --- 7. and 8. relevance and ranking ------------------------------------------------------------


@dataclass
class ViewState:
    """What is carried of one view; ``m`` is also the sum and ``n`` the count of the imputation."""

    V: Matrix
    R: Matrix
    Q: Matrix
    lo: Vector
    hi: Vector
    Z: Matrix
    C: Vector
    C2: Vector
    m: Vector
    q: Vector
    Y: Matrix
    g: Vector
    s: float = 0.0
    n: float = 0.0
    n2: float = 0.0
    rows: int = 0

    def sums(self) -> Sums:
        return Sums(self.Z, self.C, self.m, self.n)


def relevance(view: ViewState) -> Vector:
    """The share of each feature's variance that the consensus explains, beyond chance (d).

    Near-constant features are demoted.
    """
    d = len(view.m)
    if view.n <= 0:
        return np.zeros(d)
    null = -view.n2 / view.n**2
    for mass, mass2 in zip(view.C, view.C2, strict=True):
        if mass > TINY:
            null += mass2 / (mass * view.n)
    means = centred_means(view.sums())
    result = np.zeros(d)
    for i in range(d):
        mu = view.m[i] / view.n
        square = view.q[i] / view.n
        T = square - mu**2
        if 1e-9 * square >= T:
            continue
        B = float((view.C * means[i] ** 2).sum()) / view.n
        result[i] = (max(B - T * null, 0.0) / T) * (T / (T + 0.01 * mu**2))
    return result


def greedy_order(rel: Vector, Y: Matrix, mu: Vector, g: Vector, depth: int) -> NDArray[np.intp]:
    """Features from best to worst: against redundancy down to ``depth``, the rest by ``rel``."""
    rows = unit_rows(Y - np.outer(mu, g))
    b = 2.0 / Y.shape[1]
    redundancy = np.zeros(len(rel))
    left = list(range(len(rel)))
    order: list[int] = []
    while left and len(order) < depth:
        values = [rel[i] * (1.0 - redundancy[i]) for i in left]
        best = left.pop(int(np.argmax(values)))
        order.append(best)
        cos = rows @ rows[best]
        redundancy = np.maximum(redundancy, np.clip((cos**2 - b) / (1.0 - b), 0.0, 1.0))
    order += sorted(left, key=lambda i: (-rel[i], i))
    return np.array(order, dtype=np.intp)


def budget(dims: Sequence[int], share: float) -> list[int]:
    """How many features of each view make up ``share`` of all, ``n_v ∝ √d_v``.

    The water level c with ``Σ clip(c·√d_v, 1, d_v) = total`` is exact; whole numbers by the
    largest remainder, ties to the larger view.
    """
    rounded = [math.floor(share * d + 0.5) for d in dims]
    total = min(max(sum(rounded), len(dims)), sum(dims))
    roots = np.sqrt(np.array(dims, dtype=np.float64))
    fixed = np.full(len(dims), np.nan)
    while np.isnan(fixed).any():
        free = np.isnan(fixed)
        level = (total - np.nansum(fixed)) / roots[free].sum()
        below = free & (level * roots < 1)
        above = free & (level * roots > np.array(dims))
        lacking = float((1 - level * roots)[below].sum())
        excess = float((level * roots - np.array(dims))[above].sum())
        if excess > lacking:
            fixed[above] = np.array(dims)[above]
        elif lacking > 0:
            fixed[below] = 1.0
            if excess == lacking:
                fixed[above] = np.array(dims)[above]
        else:
            fixed[free] = (level * roots)[free]
    whole = np.floor(fixed + 1e-9).astype(int)
    remainders = [(-round(float(fixed[v] - whole[v]), 9), -dims[v], v) for v in range(len(dims))]
    for _, _, v in sorted(remainders)[: total - int(whole.sum())]:
        whole[v] += 1
    return [int(n) for n in whole]


# --- one chunk ----------------------------------------------------------------------------------


@dataclass
class Result:
    """``P`` is the start of the iterations, ``shares`` the rows of ``consensus`` summing to 1."""

    P: Matrix
    U: list[Matrix]
    consensus: Matrix
    shares: Matrix
    alpha: Vector
    objective: list[float]
    relevance: list[Vector]
    order: list[NDArray[np.intp]]
    views: list[ViewState]

    @property
    def iterations(self) -> int:
        return len(self.objective)


class Explicit:
    """The default preset.  Views are given as instances × features, missing rows are not read."""

    def __init__(
        self,
        dims: Sequence[int],
        clusters: int,
        *,
        lam: float = 3.0,
        beta: float = 1.0,
        theta: float = 0.1,
        eta: float = 0.01,
        xi: float = 10.0,
        neighbours: int = 5,
        decay: float = 1.0,
        sketch: int = 64,
        depth: int = 200,
        transforms: Sequence[str] | None = None,
        min_iterations: int = 10,
        max_iterations: int = 50,
        tolerance: float = 1e-4,
        inner_updates: int = 1,
    ) -> None:
        self.clusters = clusters
        self.lam, self.beta, self.theta, self.eta, self.xi = lam, beta, theta, eta, xi
        self.neighbours, self.decay, self.depth = neighbours, decay, depth
        self.transforms = list(transforms or ["minmax"] * len(dims))
        self.min_iterations, self.max_iterations = min_iterations, max_iterations
        self.tolerance = tolerance
        self.inner_updates = inner_updates
        self.alpha: Vector = np.zeros(len(dims))
        self.j = 0.0
        self.total = 0
        K = clusters
        self.views = [
            ViewState(
                V=np.zeros((d, K)),
                R=np.zeros((K, K)),
                Q=np.zeros((d, K)),
                lo=np.full(d, np.inf),
                hi=np.full(d, -np.inf),
                Z=np.zeros((d, K)),
                C=np.zeros(K),
                C2=np.zeros(K),
                m=np.zeros(d),
                q=np.zeros(d),
                Y=np.zeros((d, sketch)),
                g=np.zeros(sketch),
            )
            for d in dims
        ]

    def chunk(
        self,
        views: Sequence[Matrix],
        present: Sequence[Mask],
        signs: Matrix,
        first_P: Matrix | None = None,
    ) -> Result:
        """Process one chunk: ``views`` (N × d each), ``signs`` (N × r).

        ``first_P`` (N × K) is the spectral start and is read for the first chunk only.
        """
        if not np.any(present, axis=0).all():
            raise ValueError("a record must have at least one view")
        self._forget()
        seen = np.array([view.rows > 0 for view in self.views])
        taking_part = np.array([mask.any() for mask in present])
        X = self._scaled(views, present)
        P = self._start(X, present, first_P)
        U, consensus, objective = self._factorise(X, present, P, seen, taking_part)
        shares = rows_to_sum_one(consensus)
        self._add(X, present, shares, signs)
        scores = [relevance(view) for view in self.views]
        return Result(
            P=P,
            U=U,
            consensus=consensus,
            shares=shares,
            alpha=self.alpha.copy(),
            objective=objective,
            relevance=scores,
            order=[
                greedy_order(rel, w.Y, w.m / w.n if w.n > 0 else w.m, w.g, self.depth)
                for rel, w in zip(scores, self.views, strict=True)
            ],
            views=[replace(view) for view in self.views],
        )

    def _forget(self) -> None:
        """9. Decay, before the chunk is added; views absent from the chunk too."""
        rho = self.decay
        self.j *= rho
        for w in self.views:
            w.n, w.s, w.R, w.Q = rho * w.n, rho * w.s, rho * w.R, rho * w.Q
            w.C, w.Z, w.m, w.q = rho * w.C, rho * w.Z, rho * w.m, rho * w.q
            w.C2, w.n2 = rho**2 * w.C2, rho**2 * w.n2
            w.Y, w.g = np.sqrt(rho) * w.Y, np.sqrt(rho) * w.g

    def _scaled(self, views: Sequence[Matrix], present: Sequence[Mask]) -> list[Matrix]:
        """1. The space: lo and hi grow by this chunk before it is scaled."""
        X: list[Matrix] = []
        for x, mask, w, transform in zip(views, present, self.views, self.transforms, strict=True):
            if mask.any():
                w.lo = np.minimum(w.lo, x[mask].min(axis=0))
                w.hi = np.maximum(w.hi, x[mask].max(axis=0))
            X.append(scale(x.astype(np.float64), mask, transform, w.lo, w.hi))
        return X

    def _start(
        self, X: Sequence[Matrix], present: Sequence[Mask], first_P: Matrix | None
    ) -> Matrix:
        """2.-4. The start of the consensus, and three reassignments."""
        stored = [w.sums() for w in self.views]
        if self.total == 0:
            if first_P is None:
                raise ValueError("the first chunk needs first_P")
            P = first_P.astype(np.float64)
        else:
            P = assign(X, present, stored)
        for _ in range(3):
            together = []
            for x, mask, old in zip(X, present, stored, strict=True):
                new = weighted_sums(x, mask, P)
                together.append(Sums(old.Z + new.Z, old.C + new.C, old.m + new.m, old.n + new.n))
            P = assign(X, present, together)
        return P

    def _factorise(
        self, X: Sequence[Matrix], present: Sequence[Mask], P: Matrix, seen: Mask, taking_part: Mask
    ) -> tuple[list[Matrix], Matrix, list[float]]:
        """4.-5. The iterations; leaves V, R, Q, s and α of the views taking part in the state."""
        members = [int(v) for v in np.flatnonzero(taking_part)]
        alpha = admit(self.alpha, seen, taking_part)
        mass = 1.0 - float(alpha[~taking_part].sum())
        j = self.j + len(P)
        start = P + 1e-3
        start = start / np.linalg.norm(start, axis=0)
        U = [start.copy() for _ in X]

        filled: dict[int, Matrix] = {}
        weights: dict[int, Vector] = {}
        S: dict[int, Matrix] = {}
        s: dict[int, float] = {}
        V: dict[int, Matrix] = {}
        for v in members:
            w = self.views[v]
            columns, quality = impute(X[v].T, present[v], w.m, w.n, self.j)
            filled[v], weights[v] = columns.T, quality**2
            S[v] = neighbour_graph(X[v].T, present[v], self.neighbours)
            s[v] = w.s + float((weights[v][:, None] * filled[v] ** 2).sum())
            V[v] = w.V
            if not seen[v]:
                R, Q = chunk_statistics(filled[v], weights[v], U[v])
                V[v] = first_V(R, Q)

        def coefficient(v: int) -> float:
            if s[v] <= 0:  # a view of zeros has nothing to explain
                return 0.0
            share = alpha[v] / mass  # of what the views taking part hold together
            return float((len(members) * share) ** self.lam * j / s[v])

        def relative_loss(v: int) -> float:
            if s[v] <= 0:
                return 1.0
            R, Q = self._with_chunk(v, filled[v], weights[v], U[v])
            exact = s[v] - 2 * (V[v] * Q).sum() + ((V[v].T @ V[v]) * R).sum()
            return max(float(exact), 1e-12 * s[v]) / s[v]

        def consensus_of_views() -> Matrix:
            return update_consensus([U[v] for v in members], [weights[v] for v in members])

        consensus = consensus_of_views()
        objective: list[float] = []
        while len(objective) < self.max_iterations:
            for v in members:
                R, Q = self._with_chunk(v, filled[v], weights[v], U[v])
                a = coefficient(v)
                for _ in range(self.inner_updates):
                    V[v] = update_V(V[v], Q, R, a, self.eta)
                for _ in range(self.inner_updates):
                    U[v] = update_U(
                        U[v], filled[v].T, V[v], consensus, S[v], weights[v], weights[v], a,
                        self.beta, self.theta, self.xi,
                    )  # fmt: skip
            consensus = consensus_of_views()
            losses = np.array([relative_loss(v) for v in members])
            alpha[members] = mass * view_shares(losses, self.lam)
            objective.append(
                sum(
                    coefficient(v) * chunk_loss(filled[v].T, U[v], V[v], weights[v])
                    + indicator_terms(
                        U[v], consensus, S[v], weights[v], self.beta, self.theta, self.xi
                    )
                    + self.eta * float(row_norms(V[v]).sum())
                    for v in members
                )
            )
            if converged(objective, self.min_iterations, self.tolerance):
                break

        for v in members:
            w = self.views[v]
            w.R, w.Q = self._with_chunk(v, filled[v], weights[v], U[v])
            w.V, w.s = V[v], s[v]
        self.alpha = alpha
        return U, consensus, objective

    def _with_chunk(self, v: int, X: Matrix, weights: Vector, U: Matrix) -> tuple[Matrix, Matrix]:
        """Eq. 11: ``R`` and ``Q`` of all data, this chunk with its present ``U`` included."""
        R, Q = chunk_statistics(X, weights, U)
        return self.views[v].R + R, self.views[v].Q + Q

    def _add(
        self, X: Sequence[Matrix], present: Sequence[Mask], shares: Matrix, signs: Matrix
    ) -> None:
        """6. The statistics of the score, over present rows."""
        for x, mask, w in zip(X, present, self.views, strict=True):
            rows, P, G = x[mask], shares[mask], signs[mask]
            w.C = w.C + P.sum(axis=0)
            w.C2 = w.C2 + (P**2).sum(axis=0)
            w.n += float(mask.sum())
            w.n2 += float(mask.sum())
            w.rows += int(mask.sum())
            w.Z = w.Z + rows.T @ P
            w.m = w.m + rows.sum(axis=0)
            w.q = w.q + (rows**2).sum(axis=0)
            w.Y = w.Y + rows.T @ G
            w.g = w.g + G.sum(axis=0)
        self.j += len(shares)
        self.total += len(shares)


def chunk_statistics(X: Matrix, weights: Vector, U: Matrix) -> tuple[Matrix, Matrix]:
    """``Uᵀ W̃ U`` and ``Xᵀ W̃ U`` of one chunk; ``X`` (N × d) is imputed."""
    W = np.diag(weights)
    return U.T @ W @ U, X.T @ W @ U


def first_V(R: Matrix, Q: Matrix) -> Matrix:
    """4. V of a view seen for the first time, from the statistics of this chunk."""
    K = len(R)
    ridge = R + 1e-3 * np.trace(R) / K * np.eye(K)
    return np.asarray(np.maximum(Q @ np.linalg.inv(ridge), 0.0) + 1e-3 * Q.mean())


def rows_to_sum_one(consensus: Matrix) -> Matrix:
    """6. Soft clusters from U*; a row of zeros becomes uniform."""
    P = np.full(consensus.shape, 1.0 / consensus.shape[1])
    for i, row in enumerate(consensus):
        if row.sum() > TINY:
            P[i] = row / row.sum()
    return P
