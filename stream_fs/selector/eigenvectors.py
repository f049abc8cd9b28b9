"""Leading eigenvectors of a normalised graph D^-½SD^-½, in bounded time whatever the graph.

An iterative solver finds the vectors of an eigenvalue one at a time. A graph with many components
has the eigenvalue 1 as many times, and the solver may need any number of restarts or find nothing.
Repeated products with all vectors at once reach a space in which each component has one place.
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
WORK = 1.2e10
"""Numbers that the iterative solver may touch, about ten seconds; then it is given up."""
ROUNDS, PRODUCTS = 10, 10
"""Of iterated products: how often they are made orthogonal, and products in between."""


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

    Where it does not converge within `WORK`, or the graph has more components than it keeps
    vectors, they are a basis of a space on which M is nearly as large: enough for clusters, which
    do not depend on the basis. The eigenvalues of M must be in [−1, 1].
    """
    M = scipy.sparse.csr_array(M)
    size = M.shape[0]
    restarts = min(int(WORK / (size * basis * (basis - count))), 10 * size)
    if restarts > 0 and connected_components(M)[0] <= basis:
        try:
            _, vectors = eigsh(M, k=count, which="LA", v0=start, ncv=basis, maxiter=restarts)
        except ArpackError:  # too slow, or there is nothing to start from
            return _iterated_products(M, count, source)
        return np.asarray(vectors, np.float64)
    return _iterated_products(M, count, source)


def _iterated_products(M: Any, count: int, source: np.random.Generator) -> Floats:
    """An orthonormal basis of the space that ((M + I)/2)¹⁰⁰ leaves of a random one; (n × count)."""
    half = scipy.sparse.csr_array((M + scipy.sparse.eye_array(M.shape[0])) / 2)
    X = source.standard_normal((M.shape[0], count))
    for _ in range(ROUNDS):
        for _ in range(PRODUCTS):
            X = half @ X
        X = np.linalg.qr(X)[0]
    return np.asarray(X, np.float64)
