"""The nearest rows of every row of a chunk, found from the products of all of them.

Among equals those that follow the row are taken, the first row following the last one: to take the
first of all would make hubs of them where many rows are alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

from stream_fs.selector import library
from stream_fs.selector.arrays import Floats, Indices, Working

FEW = 16
"""Up to here it is several times faster to look for the neighbours one after the other."""

Nearest: TypeAlias = Callable[[Working, int], Indices]
"""Of the products of n rows (n×n), all less the same point, and k: the k nearest of every row, n×k,
in no order. Where there are no more than k rows, all others."""


def squared_distances(products: Working, rows: Indices, others: Indices) -> Floats:
    """Of pairs of rows, from the products of all of them (n×n)."""
    squares = np.diagonal(products).astype(np.float64)
    product = products[rows, others]
    found = squares[rows] + squares[others] - product - product
    return np.asarray(np.maximum(found, 0.0), np.float64)  # less by rounding


def nearest_compiled(products: Working, neighbours: int) -> Indices:
    """See `Nearest`; while it works, other threads of Python can. Needs no other n×n matrix."""
    n = len(products)
    k = min(neighbours, n - 1)
    nearest = np.empty((n, max(k, 0)), np.int64)
    if not nearest.size:
        return nearest.astype(np.intp, copy=False)
    products = np.ascontiguousarray(products)
    squares, distances = np.diagonal(products).astype(np.float64), np.empty(k)
    arrays = (products, squares, distances, nearest)  # which live until it returns
    library.nearest(products.dtype).find_nearest(n, k, *(array.ctypes.data for array in arrays))
    return nearest.astype(np.intp, copy=False)


def nearest_with_numpy(products: Working, neighbours: int) -> Indices:
    """See `Nearest`."""
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
    for rank in reversed(range(k + 1)):  # as it was; the next one may be the row itself
        distances[rows, nearest[rank]] = found[rank]
    return nearest[:k].T, nearest[k]
