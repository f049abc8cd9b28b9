"""The neighbourhood graph of a chunk: which present rows are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.selector.arrays import Floats, Indices, Working

FEW = 16
"""Up to here it is several times faster to look for the neighbours one after the other."""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """`S` (N×N CSR, symmetric, zero diagonal) and its `degrees` (N,); L = diag(degrees) − S."""

    S: scipy.sparse.csr_array[Any]
    degrees: Floats


def neighbour_graph(gram: Working, at: Indices, size: int, neighbours: int) -> Graph:
    """Symmetric k-nearest neighbours with a heat kernel, among the rows that have the view.

    `gram` (n×n) holds the products of the present rows, all less the same point; they stand at the
    positions `at` of the chunk's `size` rows. Kernel width: the mean squared neighbour distance.
    Rows without the view have no edges.
    """
    n = len(at)
    k = min(neighbours, n - 1)
    if k < 1:
        return Graph(scipy.sparse.csr_array((size, size)), np.zeros(size))
    squares = np.diagonal(gram).astype(np.float64)
    distances = np.add.outer(squares, squares)
    distances -= gram
    distances -= gram  # in place, twice: no other matrix of this size is needed
    if distances.min() < 0:  # by rounding
        np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, np.inf)
    nearest = _nearest(distances, k) + n * np.arange(n)[:, None]
    width = float(distances.take(nearest).mean())
    joined = np.zeros((n, n), bool)
    joined.put(nearest, True)
    edges = np.flatnonzero(joined | joined.T)  # row by row
    rows, columns = np.divmod(edges, n)
    length = distances.take(edges)
    heat = np.exp(length / -width) if width > 0 else np.ones_like(length)
    starts = np.zeros(size + 1, np.intp)
    starts[at + 1] = np.bincount(rows, minlength=n)
    S = scipy.sparse.csr_array((heat, at[columns], np.cumsum(starts)), shape=(size, size))
    degrees = np.zeros(size)
    degrees[at] = np.bincount(rows, heat, minlength=n)
    return Graph(S, degrees)


def _nearest(distances: Floats, k: int) -> Indices:
    """The k least of every row, (n×k), in no order; the diagonal is infinite.

    Among equals those that follow the row, the first row following the last one: to take the first
    of all would make hubs of them where many rows are alike.
    """
    n, rows = len(distances), np.arange(len(distances))
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
    for rank in reversed(range(k + 1)):  # as it was; the next one may be the row itself
        distances[rows, nearest[rank]] = found[rank]
    return nearest[:k].T, nearest[k]


def scaled(
    matrix: scipy.sparse.csr_array[Any], factor: float, precision: Any
) -> scipy.sparse.csr_array[Any]:
    """The matrix times a factor, in this precision; its structure is shared."""
    data = (factor * matrix.data).astype(precision)
    return scipy.sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
