"""Transforms: from the rows of a view to x̃, on which all computation is done.

`minmax`  x̃ = unit((x − lo)/(hi − lo)), lo and hi running per feature, the present chunk included
`unit`    x̃ = x/‖x‖
`none`    x̃ = x

x̃ is non-negative. Earlier sums are not rescaled when a range widens.

CSR rows stay sparse: once a feature has been negative, zeros are no longer the lowest values, and
the rows are held as a sparse part plus a multiple of the transformed zero row (`Shifted`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.selector.arrays import Floats, Rows, Scaled, Shifted
from stream_fs.selector.state import Range

_SAFE = (1e-15, 1e15)
"""Magnitudes whose squares, sums and ratios are well within single precision."""


def widen(seen: Range | None, rows: Rows) -> Range:
    """The running range extended by these rows; `None` stands for no earlier rows.

    Sparse rows have zeros in every column, so their lo is at most 0.
    """
    if isinstance(rows, scipy.sparse.csr_array):
        hi = np.asarray(rows.max(axis=0).toarray(), np.float64).ravel()
        lo = np.zeros_like(hi)
        if rows.data.min(initial=0.0) < 0:  # in rows that came dense
            np.minimum(lo, rows.min(axis=0).toarray().ravel(), out=lo)
    else:
        lo, hi = rows.min(axis=0).astype(np.float64), rows.max(axis=0).astype(np.float64)
    if seen is None:
        return Range(lo, hi)
    return Range(np.minimum(seen.lo, lo), np.maximum(seen.hi, hi))


def minmax(rows: Rows, seen: Range) -> Scaled:
    """Rows as shares of each feature's range, then to unit length; a constant feature is 0.

    Needs lo ≤ x ≤ hi; of CSR, lo ≤ 0, and every value stored in rows with a negative one.
    """
    if isinstance(rows, scipy.sparse.csr_array):
        if seen.lo.any():
            return _shifted(rows, seen)
        shares = rows.data / _positive(seen.hi)[rows.indices]
        return unit(_with_data(rows, shares.astype(rows.dtype)))
    span = seen.hi / 2 - seen.lo / 2  # half of it: the whole could overflow
    varying = span[span > 0]
    exact = varying.size == 0 or (varying.min() > _SAFE[0] and varying.max() < _SAFE[1])
    working = rows.dtype if exact else np.dtype(np.float64)
    half = np.asarray(rows, working) / 2 if not exact else rows * working.type(0.5)
    half -= (seen.lo / 2).astype(working)
    half /= _positive(span).astype(working)
    return unit(half.astype(rows.dtype, copy=False), owned=True)


def _shifted(rows: Any, seen: Range) -> Shifted:
    """CSR rows x in a range from below zero: o = −lo/(hi − lo), s = x/(hi − lo) + o, x̃ = s/‖s‖.

    Rows that store every value hold x̃ itself and no share of o, so that nothing cancels. Squares
    are taken relative to a row's largest number, o relative to its own: neither can underflow.
    """
    half = _positive(seen.hi / 2 - seen.lo / 2)  # the whole could overflow
    offset = np.abs(seen.lo) / 2 / half
    most = float(offset.max())
    offset /= most if most > 0 else 1.0
    counts, columns = np.diff(rows.indptr), rows.indices
    at, whole = np.repeat(np.arange(len(counts)), counts), counts == rows.shape[1]
    values = rows.data.astype(np.float64) / 2
    values -= np.where(whole[at], seen.lo[columns] / 2, 0.0)
    values /= half[columns]
    shares = _with_data(rows, values)
    share = np.where(whole, 0.0, most)
    peak = _positive(np.maximum(np.asarray(shares.max(axis=1).toarray()).ravel(), share))
    values, share = values / peak[at], share / peak
    squares = np.bincount(
        at, values * (values + 2 * share[at] * offset[columns]), minlength=len(counts)
    )
    norms = _positive(np.sqrt(squares + share**2 * (offset @ offset)))
    return Shifted(
        _with_data(rows, (values / norms[at]).astype(rows.dtype)),
        (share / norms).astype(rows.dtype),
        offset.astype(rows.dtype),
    )


def unit(rows: Rows, *, owned: bool = False) -> Rows:
    """Rows to unit Euclidean length; rows of zeros stay. `owned` rows are overwritten."""
    if isinstance(rows, scipy.sparse.csr_array):
        lengths = np.diff(rows.indptr)
        peak = _positive(np.asarray(abs(rows).max(axis=1).toarray(), np.float64).ravel())
        scaled = rows.data / np.repeat(peak, lengths)
        at = np.repeat(np.arange(rows.shape[0]), lengths)
        norms = np.sqrt(np.bincount(at, weights=scaled * scaled, minlength=rows.shape[0]))
        return _with_data(rows, (scaled / np.repeat(_positive(norms), lengths)).astype(rows.dtype))
    squares = np.einsum("ij,ij->i", rows, rows)
    if _outside(squares):
        peak = _positive(np.abs(rows).max(axis=1, initial=0.0).astype(np.float64))
        scaled = rows / peak[:, None]
        norms = _positive(np.sqrt(np.einsum("ij,ij->i", scaled, scaled)))
        return np.asarray(scaled / norms[:, None], rows.dtype)
    norms = _positive(np.sqrt(squares)).astype(rows.dtype)[:, None]
    return np.asarray(np.divide(rows, norms, out=rows if owned else None))


def fits_single(rows: Rows, *carried: Floats) -> bool:
    """Whether products of the rows with the carried arrays stay well within float32's range."""
    values = rows.data if isinstance(rows, scipy.sparse.csr_array) else rows
    peaks = [float(part.max(initial=0.0)) for part in (values, *carried)]
    return all(peak == 0 or _SAFE[0] < peak < _SAFE[1] for peak in peaks)


def _outside(squares: Any) -> bool:
    """Whether any sum of squares is outside the range in which it is accurate enough."""
    positive = squares[squares != 0]
    return positive.size < squares.size or bool(
        positive.size and not (positive.min() > _SAFE[0] ** 2 and positive.max() < _SAFE[1] ** 2)
    )


def _positive(numbers: Floats) -> Any:
    """The numbers, with 1 in place of 0: as a divisor it leaves zeros zero."""
    return np.where(numbers > 0, numbers, 1.0)


def _with_data(rows: Any, data: Any) -> scipy.sparse.csr_array[Any]:
    return scipy.sparse.csr_array((data, rows.indices, rows.indptr), shape=rows.shape)
