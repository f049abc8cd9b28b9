"""The array types of the selector, and the few operations that treat dense and CSR alike.

V and Q (d×K) are stored column by column while they go through the iterations: columns are few and
long, and V's weights go by row, so that this is several times faster. What is kept in a state is
stored row by row, whatever it was computed from, so that a model restored from bytes goes on to the
same bytes.
"""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Accumulators and everything that is small: always double precision."""
Working: TypeAlias = NDArray[np.floating[Any]]
"""Rows and what is multiplied with them: the precision of the chunk."""
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]
Rows: TypeAlias = "Working | scipy.sparse.csr_array[Any]"
"""Instances × features, dense or CSR."""

TINY = float(np.finfo(np.float32).tiny)
"""Floor of denominators that are free of the data's scale."""
FLOORS = {np.dtype(np.float32): 1e-20, np.dtype(np.float64): 1e-150}
"""Added to denominators that have the data's scale, by precision: no quotient can overflow."""
SMALL = 1_000_000
"""Multiplications up to which OpenBLAS has a way of its own for matrices that lie row by row: it
takes down to half of the time, a copy of the narrow one included."""
CEILINGS = {np.dtype(np.float32): 1e20, np.dtype(np.float64): 1e100}
"""Largest weight of V's penalty, by precision: nothing that it is multiplied with can overflow."""


def gram(rows: Rows) -> Working:
    """XXᵀ, (n × n), dense, in the precision of the rows."""
    product = rows @ rows.T
    return np.asarray(product.toarray() if isinstance(product, scipy.sparse.csr_array) else product)


def column_sums(rows: Rows) -> Floats:
    """Σ_i x_i, accumulated in double precision; (d,)."""
    return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel()


def column_square_sums(rows: Rows) -> Floats:
    """Σ_i x_i² per feature, accumulated in double precision; (d,)."""
    if isinstance(rows, scipy.sparse.csr_array):
        squares = rows.data.astype(np.float64) ** 2
        at = rows.indices
        return np.asarray(np.bincount(at, weights=squares, minlength=rows.shape[1]), np.float64)
    return np.asarray(np.einsum("ij,ij->j", rows, rows, dtype=np.float64), np.float64)


def row_square_sums(rows: Rows) -> Floats:
    """‖x_i‖² of every row, (n,)."""
    if isinstance(rows, scipy.sparse.csr_array):
        return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows), np.float64)


def cross(rows: Rows, other: Working, out: Working | None = None) -> Working:
    """XᵀB, (d × columns of B), in the precision of the rows; each column lies together."""
    other = other.astype(rows.dtype, copy=False)
    if isinstance(rows, np.ndarray):
        return np.matmul(other.T, rows, out=None if out is None else out.T).T
    product = np.asfortranarray(rows.T @ other)
    if out is None:
        return product
    out[:] = product
    return out


def times(rows: Rows, other: Working, out: Working | None = None) -> Working:
    """XB, (n × columns of B), in the precision of the rows."""
    other = other.astype(rows.dtype, copy=False)
    if isinstance(rows, np.ndarray):
        if rows.size * other[0].size <= SMALL:
            other = np.ascontiguousarray(other)
        return np.matmul(rows, other, out=out)
    product = np.asarray(rows @ other)
    if out is None:
        return product
    out[:] = product
    return out


def by_column(factor: Working, small: Working) -> Working:
    """AB for a tall A and a small square B, stored column by column like A."""
    return (small.T @ factor.T).T


def frobenius(left: Working, right: Working) -> float:
    """⟨A, B⟩ = Σ a_ij b_ij of two matrices that are stored column by column."""
    return float(np.vdot(left.T, right.T))
