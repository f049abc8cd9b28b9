"""The core in NumPy: available everywhere, and the readable form of the loops in C."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_fs.selector.arrays import Floats, Indices, Working, frobenius
from stream_fs.selector.imputation import product, transposed_product
from stream_fs.selector.kernels.interface import (
    ROUNDING,
    Block,
    Factors,
    Losses,
    Rival,
    Terms,
    ViewProblem,
)
from stream_fs.selector.steps import (
    UStepConstants,
    consensus_step,
    fixed_numerator,
    regularisers,
    row_lengths,
    u_products,
    u_step,
    v_step,
)

FEW = 16
"""Up to this number of neighbours, searching for one after the other is several times faster."""


class NumpyIteration:
    """Starts from `U` (views×N×K) and each view's V; `repeats` V and U steps in every step."""

    def __init__(
        self,
        problems: Sequence[ViewProblem],
        constants: UStepConstants,
        U: Working,
        start: Sequence[Working],
        repeats: int,
    ) -> None:
        constants = constants.repeated(U.shape[2])
        self._problems, self._constants, self._repeats = problems, constants, repeats
        self._V = [
            V.astype(problem.data.rows.dtype, order="F")
            for problem, V in zip(problems, start, strict=True)
        ]
        self._lengths = [row_lengths(V) for V in self._V]
        self._now = u_products(U, constants)
        self._consensus = consensus_step(U, constants)
        self._XV, self._VtV = np.empty_like(U), np.empty_like(self._now.UtU)

    def step(self, a: Sequence[float]) -> Terms:
        """Update V of every view, U of every view and U*."""
        for v, problem in enumerate(self._problems):
            self._update_V(v, a[v])
            product(problem.data, self._V[v], out=self._XV[v])
            self._VtV[v] = self._V[v].T @ self._V[v]
        self._update_U(np.array(a, self._XV.dtype)[:, None, None])
        losses = self._losses()
        self._consensus = consensus_step(self._now.U, self._constants)
        sparsity = sum(
            problem.eta * float(lengths.sum())
            for problem, lengths in zip(self._problems, self._lengths, strict=True)
        )
        return Terms(losses, regularisers(self._now, self._consensus, self._constants), sparsity)

    def factors(self) -> Factors:
        """The factors after the last step."""
        now = self._now
        return Factors(now.U, now.UtU, now.UtWU, self._V, self._consensus)

    def _update_V(self, v: int, a: float) -> None:
        """Several V steps on the same product with the rows."""
        problem = self._problems[v]
        Q = transposed_product(problem.data, self._now.U[v])
        Q += problem.Q0  # Eq. 11
        R = (problem.R0 + self._now.UtWU[v]).astype(Q.dtype)
        for _ in range(self._repeats):
            self._V[v] = v_step(self._V[v], self._lengths[v], Q, R, a, problem.eta)
            self._lengths[v] = row_lengths(self._V[v])

    def _update_U(self, a: Working) -> None:
        """Several U steps on the same XV, of all views at once."""
        constants = self._constants
        fixed, aVtV = fixed_numerator(self._XV, self._consensus, a, constants), self._VtV * a
        for _ in range(self._repeats):
            self._now = u_products(u_step(self._now, fixed, aVtV, constants), constants)

    def _losses(self) -> Losses:
        """The loss of every view: of this chunk from W̃XV, of earlier ones from their sums."""
        chunk, carried = [], []
        for v, problem in enumerate(self._problems):
            VtV = self._VtV[v]
            fitted = 2 * float(np.vdot(self._XV[v], self._now.U[v]))
            chunk.append(problem.energy - fitted + float(np.vdot(VtV, self._now.UtWU[v])))
            fitted = 2 * frobenius(self._V[v], problem.Q0)
            carried.append(problem.energy0 - fitted + float(np.vdot(VtV, problem.R0)))
        return Losses(chunk, carried)


def nearest_rows(products: Working, neighbours: int) -> Indices:
    """The nearest of each of n rows (n×k) in no order, from their products (n×n).

    The products are those of the rows, all less the same point. Where there are no more than k
    rows, all others. Among equals those that follow the row are taken, the first row following the
    last one: to take the first of all would make hubs of them where many rows are alike.
    """
    n = len(products)
    k = min(neighbours, n - 1)
    if k < 1:
        return np.empty((n, 0), np.intp)
    rows = np.arange(n)
    distances = _all_distances(products)
    nearest, next_one = _some_nearest(distances, k)
    farthest = distances[rows, nearest[:, -1]]
    tied = np.flatnonzero(distances[rows, next_one] == farthest)
    if tied.size:
        behind = (rows - tied[:, None]) % n
        own, limit = distances[tied], farthest[tied, None]
        behind[own < limit] = -1
        behind[own > limit] = n
        nearest[tied] = np.argpartition(behind, k - 1, axis=1)[:, :k]
    return nearest


def _all_distances(products: Working) -> Floats:
    """Squared, (n×n); the diagonal is infinite."""
    squares = np.diagonal(products).astype(np.float64)
    distances = np.add.outer(squares, squares)
    distances -= products
    distances -= products  # in place, twice: no other matrix of this size is needed
    if distances.min() < 0:  # by rounding
        np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, np.inf)
    return np.asarray(distances, np.float64)


def _some_nearest(distances: Floats, k: int) -> tuple[Indices, Indices]:
    """The k least of every row, (n×k), the largest of them last, and the next one, (n,)."""
    if k > FEW:
        parted = np.argpartition(distances, [k - 1, k], axis=1)
        return parted[:, :k], parted[:, k]
    rows = np.arange(len(distances))
    nearest, found = np.empty((k + 1, len(rows)), np.intp), np.empty((k + 1, len(rows)))
    for rank in range(k + 1):
        nearest[rank] = distances.argmin(axis=1)
        found[rank] = distances[rows, nearest[rank]]
        distances[rows, nearest[rank]] = np.inf
    for rank in reversed(range(k + 1)):  # as before; the next one may be the row itself
        distances[rows, nearest[rank]] = found[rank]
    return nearest[:k].T, nearest[k]


def novelty(squares: Working, b: float) -> Floats:
    """1 − clip((cos² − b)/(1 − b), 0, 1)."""
    found = np.minimum((1 - squares.astype(np.float64)) / (1 - b), 1.0)
    found[found < ROUNDING] = 0.0
    return np.asarray(found, np.float64)


def choose_features(block: Block, rival: Rival, most: int) -> Indices:
    """Greedy choices within a block: their positions, at most `most`.

    Stops at the first that the rival beats. Ties go to the lower index; a feature of no worth is
    not chosen.
    """
    scores, features = block.scores, block.features
    left, pairs = novelty(block.nearest, block.chance), novelty(block.squares, block.chance)
    worth = scores * left
    taken: list[int] = []
    while len(taken) < most:
        best = int(worth.argmax())
        if worth[best] <= 0 or (worth[best], -features[best]) < (rival.worth, -rival.feature):
            break
        taken.append(best)
        np.minimum(left, pairs[best], out=left)
        left[best] = 0.0
        np.multiply(scores, left, out=worth)
    return np.array(taken, np.intp)
