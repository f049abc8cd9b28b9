"""The neighbourhood graph of a chunk: which present rows are alike."""

from __future__ import annotations

from collections.abc import Sequence
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
    distances -= 2 * gram
    np.maximum(distances, 0.0, out=distances)
    np.fill_diagonal(distances, np.inf)
    one, other = np.repeat(np.arange(n), k), _nearest(distances, k).ravel()
    width = float(distances[one, other].mean())
    # Each edge once, from the lower row to the higher; then in both directions.
    low, high = np.divmod(np.unique(np.minimum(one, other) * n + np.maximum(one, other)), n)
    length = distances[low, high]
    heat = np.exp(length / -width) if width > 0 else np.ones_like(length)
    rows, columns = at[np.concatenate([low, high])], at[np.concatenate([high, low])]
    heat = np.tile(heat, 2)
    S = scipy.sparse.csr_array((heat, (rows, columns)), shape=(size, size))
    return Graph(S, np.asarray(np.bincount(rows, heat, minlength=size), np.float64))


def _nearest(distances: Floats, k: int) -> Indices:
    """The k least of every row, (n×k), in no order."""
    if k > FEW:
        return np.argpartition(distances, k - 1, axis=1)[:, :k]
    left, rows = distances.copy(), np.arange(len(distances))
    nearest = np.empty((len(distances), k), np.intp)
    for rank in range(k):
        nearest[:, rank] = left.argmin(axis=1)
        left[rows, nearest[:, rank]] = np.inf
    return nearest


def block_diagonal(blocks: Sequence[scipy.sparse.csr_array[Any]]) -> scipy.sparse.csr_array[Any]:
    """Square matrices of one size along the diagonal: SciPy's own takes many times as long."""
    size = blocks[0].shape[0]
    stored = np.cumsum([0, *(block.nnz for block in blocks)])
    columns = [block.indices + number * size for number, block in enumerate(blocks)]
    starts = [block.indptr[1:] + before for block, before in zip(blocks, stored, strict=False)]
    return scipy.sparse.csr_array(
        (
            np.concatenate([block.data for block in blocks]),
            np.concatenate(columns),
            np.concatenate([[0], *starts]),
        ),
        shape=(len(blocks) * size, len(blocks) * size),
    )
