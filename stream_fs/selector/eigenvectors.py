"""Leading eigenvectors of a normalised graph D^-½SD^-½, in bounded time for any graph.

A solver that begins with one vector finds the copies of an eigenvalue one at a time. A graph with
several components has the eigenvalue 1 as often, and such a solver may miss copies or need any
number of restarts. Products with all vectors at once find every copy together.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse
from scipy.sparse.csgraph import connected_components
from scipy.sparse.linalg import ArpackError, eigsh

from stream_fs.selector.arrays import Floats

DENSE_ROWS = 1000
"""Up to here all eigenvectors are cheaper than an iterative solver."""
WORK = 1.8e10
"""Numbers that an iterative solver may touch, about ten seconds; then it is stopped."""
GUARD = 10
"""Vectors that the block solver keeps beyond those asked for: the last ones converge slowly."""
DEGREE = 30
"""Products of the block solver between two orthogonalisations."""
ROUNDS = 50
"""Most orthogonalisations of the block solver."""
RESIDUAL = 1e-8
"""‖Mx − λx‖ up to which the block solver accepts an eigenvector."""


def leading_eigenvectors(M: Any, count: int, source: np.random.Generator) -> Floats:
    """Orthonormal vectors (n × count) of the largest eigenvalues of a symmetric sparse M (n×n)."""
    size = M.shape[0]
    if size <= DENSE_ROWS or count >= size - 1:
        first = max(size - count, 0)
        _, vectors = scipy.linalg.eigh(M.toarray(), subset_by_index=[first, size - 1])
        return np.asarray(vectors, np.float64)
    basis = min(max(2 * count + 1, 20), size)
    return sparse_eigenvectors(M, count, source.random(size), basis, source)


def sparse_eigenvectors(
    M: Any, count: int, start: Floats, basis: int, source: np.random.Generator
) -> Floats:
    """The same by a solver that begins at `start` (n) and keeps `basis` vectors.

    Where it does not converge within `WORK`, or the graph has several components, a block solver
    takes its place. The eigenvalues of M must be in [−1, 1].
    """
    M = scipy.sparse.csr_array(M)
    size = M.shape[0]
    restarts = min(int(WORK / ((basis - count) * (M.nnz + size * basis))), 10 * size)
    if restarts > 0 and connected_components(M, directed=False)[0] == 1:
        try:
            _, vectors = eigsh(
                M, k=count, which="LA", v0=start, ncv=basis, maxiter=restarts, rng=source
            )
        except ArpackError:  # too slow, or there is nothing to start from
            return _block_eigenvectors(M, count, source)
        return np.asarray(vectors, np.float64)
    return _block_eigenvectors(M, count, source)


def _block_eigenvectors(M: Any, count: int, source: np.random.Generator) -> Floats:
    """The same by Chebyshev-filtered subspace iteration, as accurate as `WORK` allows.

    A Chebyshev polynomial of M is small on [−1, least], where `least` is the smallest Ritz value,
    and grows fast above it (Zhou, Saad, Tiago and Chelikowsky, 2006).
    """
    size = M.shape[0]
    width = min(count + GUARD, size)
    rounds = int(WORK / (width * (DEGREE * (M.nnz + 4 * size) + 4 * size * width)))
    X = np.linalg.qr(source.standard_normal((size, width)))[0]
    least = 0.0
    for _ in range(min(max(rounds, 2), ROUNDS)):
        X = np.linalg.qr(_filtered(M, X, least))[0]
        product = M @ X
        values, turned = np.linalg.eigh(X.T @ product)
        values, turned = values[::-1], turned[:, ::-1]
        X, product = X @ turned, product @ turned
        residuals = np.linalg.norm(product - X * values, axis=0)
        if residuals[:count].max() <= RESIDUAL:
            break
        least = min(max(values[-1], 0.0), 1 - 1e-12)
    return np.asarray(X[:, :count], np.float64)


def _filtered(M: Any, X: Floats, least: float) -> Floats:
    """A Chebyshev polynomial of degree `DEGREE`, of M with [−1, least] brought to [−1, 1], by X."""
    centre, half = (least - 1) / 2, (least + 1) / 2
    before, X = X, (M @ X - centre * X) / half
    for _ in range(DEGREE - 1):
        before, X = X, 2 / half * (M @ X - centre * X) - before
    return X
