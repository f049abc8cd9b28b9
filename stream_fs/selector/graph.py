"""The neighbourhood graph of a chunk: which present rows are alike."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.selector.arrays import Floats, Indices


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """`S` (N×N CSR, symmetric, zero diagonal) and its `degrees` (N,); L = diag(degrees) − S."""

    S: scipy.sparse.csr_array[Any]
    degrees: Floats


def neighbour_graph(gram: Floats, at: Indices, size: int, neighbours: int) -> Graph:
    """Symmetric k-nearest neighbours with a heat kernel, among the rows that have the view.

    `gram` (n×n) holds the products of the present rows, which stand at the positions `at` of the
    chunk's `size` rows; it is overwritten. Kernel width: the mean squared neighbour distance.
    Rows without the view have no edges.
    """
    n = len(at)
    k = min(neighbours, n - 1)
    if k < 1:
        return Graph(scipy.sparse.csr_array((size, size)), np.zeros(size))
    squares = np.diagonal(gram).copy()
    distances = gram
    distances *= -2
    distances += squares[:, None]
    distances += squares
    np.fill_diagonal(distances, np.inf)
    nearest = np.argpartition(distances, k - 1, axis=1)[:, :k]
    length = np.maximum(np.take_along_axis(distances, nearest, axis=1), 0.0)
    width = length.mean()
    heat = np.exp(-length / width) if width > 0 else np.ones_like(length)
    directed = scipy.sparse.csr_array(
        (heat.ravel(), (np.repeat(at, k), at[nearest.ravel()])), shape=(size, size)
    )
    S = scipy.sparse.csr_array(directed.maximum(directed.T))
    return Graph(S, np.asarray(S.sum(axis=1), np.float64).ravel())
