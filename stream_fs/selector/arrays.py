"""The array types of the selector, and the few operations that treat dense and CSR alike."""

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


def gram(rows: Rows) -> Floats:
    """XXᵀ, (n × n), dense."""
    product = rows @ rows.T
    return np.asarray(
        product.toarray() if isinstance(product, scipy.sparse.csr_array) else product, np.float64
    )


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


def cross(rows: Rows, other: Working) -> Working:
    """XᵀB, (d × columns of B), in the precision of the rows."""
    return np.asarray(rows.T @ other.astype(rows.dtype, copy=False))


def times(rows: Rows, other: Working) -> Floats:
    """XB, (n × columns of B), multiplied in the precision of the rows, returned in double."""
    return np.asarray(rows @ other.astype(rows.dtype, copy=False), np.float64)
