"""The graph of nearest neighbours among the present rows of a chunk."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.selector.arrays import Floats, Indices, Working

HALF = 31
"""Bits of one of two row numbers that are packed into an integer."""


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """`S` (N×N CSR, symmetric, zero diagonal) and its `degrees` (N,); L = diag(degrees) − S."""

    S: scipy.sparse.csr_array[Any]
    degrees: Floats


def neighbour_graph(products: Working, nearest: Indices, at: Indices, size: int) -> Graph:
    """Symmetric nearest neighbours with a heat kernel, among the rows that have the view.

    `products` (n×n) are those of the present rows, all less the same point, `nearest` (n×k) the
    neighbours of each; the rows stand at the positions `at` of the chunk's `size` rows. Kernel
    width: the mean squared neighbour distance. Rows without the view have no edges.
    """
    n = len(at)
    if not nearest.size:
        return Graph(scipy.sparse.csr_array((size, size)), np.zeros(size))
    own = np.repeat(np.arange(n), nearest.shape[1])
    width = float(squared_distances(products, own, nearest.ravel()).mean())
    rows, columns = _both_ways(own, nearest.ravel())
    length = squared_distances(products, rows, columns)
    heat = np.exp(length / -width) if width > 0 else np.ones_like(length)
    starts = np.zeros(size + 1, np.intp)
    starts[at + 1] = np.bincount(rows, minlength=n)
    S = scipy.sparse.csr_array((heat, at[columns], np.cumsum(starts)), shape=(size, size))
    degrees = np.zeros(size)
    degrees[at] = np.bincount(rows, heat, minlength=n)
    return Graph(S, degrees)


def _both_ways(ones: Indices, others: Indices) -> tuple[Indices, Indices]:
    """The pairs in both directions, without duplicates, sorted by row."""
    pairs = np.sort(np.concatenate([ones << HALF | others, others << HALF | ones]))
    once = np.append(True, pairs[1:] != pairs[:-1])
    pairs = pairs[once]
    return pairs >> HALF, pairs & ((1 << HALF) - 1)


def squared_distances(products: Working, rows: Indices, others: Indices) -> Floats:
    """Of pairs of rows, from the products of all of them (n×n)."""
    squares = np.diagonal(products).astype(np.float64)
    product = products[rows, others]
    found = squares[rows] + squares[others] - product - product
    return np.asarray(np.maximum(found, 0.0), np.float64)  # less by rounding


def scaled(
    matrix: scipy.sparse.csr_array[Any], factor: float, precision: Any
) -> scipy.sparse.csr_array[Any]:
    """The matrix times a factor, in this precision; its structure is shared."""
    data = (factor * matrix.data).astype(precision)
    return scipy.sparse.csr_array((data, matrix.indices, matrix.indptr), shape=matrix.shape)
