"""Array types of the selector, and the operations that accept both dense arrays and CSR.

V and Q (d×K) are stored column by column while they go through the iterations: columns are few and
long, and V's weights go by row, so that this is several times faster. What is kept in a state is
stored row by row, whatever it was computed from, so that a model restored from bytes goes on to the
same bytes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
"""Accumulators and small arrays: always double precision."""
Working: TypeAlias = NDArray[np.floating[Any]]
"""Rows and their factors: the precision of the chunk."""
Mask: TypeAlias = NDArray[np.bool_]
Indices: TypeAlias = NDArray[np.intp]
Rows: TypeAlias = "Working | scipy.sparse.csr_array[Any]"
"""Instances × features, dense or CSR."""


@dataclass(frozen=True, slots=True, eq=False)
class Shifted:
    """The rows `sparse` + `share`·`offset`ᵀ (n × d), never materialised.

    What zeros become in a space where they are not zero: `offset` (d,), `share` (n,) of it in each
    row. All three are non-negative, so that no product with them cancels, and of one precision.
    """

    sparse: scipy.sparse.csr_array[Any]
    share: Working
    offset: Working

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and features."""
        return len(self.share), len(self.offset)

    @property
    def dtype(self) -> np.dtype[Any]:
        """The precision."""
        return self.offset.dtype

    @property
    def at(self) -> Indices:
        """The row of every stored value."""
        return np.repeat(np.arange(len(self.share)), np.diff(self.sparse.indptr))

    def squares(self) -> Floats:
        """What every stored value adds to the square of its feature's share of the offset."""
        data = self.sparse.data.astype(np.float64)
        shift = self.share[self.at] * self.offset[self.sparse.indices]
        return np.asarray(data * (data + 2.0 * shift), np.float64)


Scaled: TypeAlias = "Rows | Shifted"
"""Rows in the space of their view."""

TINY = float(np.finfo(np.float32).tiny)
"""Floor of denominators that are free of the data's scale."""
FLOORS = {np.dtype(np.float32): 1e-20, np.dtype(np.float64): 1e-150}
"""Added to denominators with the data's scale, by precision, so that no quotient overflows."""
SMALL = 1_000_000
"""Multiplications up to which OpenBLAS has a faster kernel for row-major matrices: down to half
the time, including a copy of the narrow matrix."""
CEILINGS = {np.dtype(np.float32): 1e20, np.dtype(np.float64): 1e100}
"""Largest weight of V's penalty, by precision, so that no product with it overflows."""


def gram(rows: Scaled) -> Working:
    """XXᵀ, (n × n), dense, in the precision of the rows."""
    if isinstance(rows, Shifted):
        one_sided = rows.sparse @ rows.offset + rows.share * (rows.offset @ rows.offset / 2)
        between, products = np.outer(one_sided, rows.share), gram(rows.sparse)
        products += between
        products += between.T
        return products
    product = rows @ rows.T
    return np.asarray(product.toarray() if isinstance(product, scipy.sparse.csr_array) else product)


def column_sums(rows: Scaled) -> Floats:
    """Σ_i x_i, accumulated in double precision; (d,)."""
    if isinstance(rows, Shifted):
        share = float(rows.share.sum(dtype=np.float64))
        return column_sums(rows.sparse) + share * rows.offset.astype(np.float64)
    return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel()


def column_square_sums(rows: Scaled) -> Floats:
    """Σ_i x_i² per feature, accumulated in double precision; (d,)."""
    if isinstance(rows, Shifted):
        own = np.bincount(rows.sparse.indices, rows.squares(), minlength=rows.shape[1])
        share = np.square(rows.share, dtype=np.float64).sum()
        return np.asarray(own + share * np.square(rows.offset, dtype=np.float64), np.float64)
    if isinstance(rows, scipy.sparse.csr_array):
        squares = rows.data.astype(np.float64) ** 2
        at = rows.indices
        return np.asarray(np.bincount(at, weights=squares, minlength=rows.shape[1]), np.float64)
    return np.asarray(np.einsum("ij,ij->j", rows, rows, dtype=np.float64), np.float64)


def row_square_sums(rows: Scaled) -> Floats:
    """‖x_i‖² of every row, (n,)."""
    if isinstance(rows, Shifted):
        own = np.bincount(rows.at, rows.squares(), minlength=rows.shape[0])
        offset = np.square(rows.offset, dtype=np.float64).sum()
        return np.asarray(own + offset * np.square(rows.share, dtype=np.float64), np.float64)
    if isinstance(rows, scipy.sparse.csr_array):
        return np.asarray(rows.multiply(rows).sum(axis=1), np.float64).ravel()
    return np.asarray(np.einsum("ij,ij->i", rows, rows), np.float64)


def cross(rows: Scaled, other: Working, out: Working | None = None) -> Working:
    """XᵀB, (d × columns of B), in the precision of the rows, stored by column."""
    other = other.astype(rows.dtype, copy=False)
    if isinstance(rows, np.ndarray):
        return np.matmul(other.T, rows, out=None if out is None else out.T).T
    if isinstance(rows, Shifted):
        product = np.asfortranarray(rows.sparse.T @ other)
        product += np.outer(rows.share @ other, rows.offset).T
    else:
        product = np.asfortranarray(rows.T @ other)
    if out is None:
        return product
    out[:] = product
    return out


def times(rows: Scaled, other: Working, out: Working | None = None) -> Working:
    """XB, (n × columns of B), in the precision of the rows."""
    other = other.astype(rows.dtype, copy=False)
    if isinstance(rows, np.ndarray):
        if rows.size * other[0].size <= SMALL:
            other = np.ascontiguousarray(other)
        return np.matmul(rows, other, out=out)
    if isinstance(rows, Shifted):
        product = np.asarray(rows.sparse @ other)
        product += np.multiply.outer(rows.share, rows.offset @ other)
    else:
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
