"""Whether the values of a view can be used: judged for many rows at once, told row by row.

The verdict on a row depends on that row alone, never on what else is in the batch.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_fs.selector.arrays import Mask, Working
from stream_fs.selector.chunk import LARGEST
from stream_fs.wire.declared import DeclaredView
from stream_fs.wire.documents import Row, SparseRow
from stream_fs.wire.found import Fault


def dense_faults(view: DeclaredView, rows: Working) -> dict[int, Fault]:
    """By row, what is wrong with it."""
    if rows.size == 0 or usable(view, rows, sparse=False):
        return {}
    faults = {}
    for row in np.flatnonzero(~_fine(view, rows, sparse=False).all(axis=1)).tolist():
        feature = int(np.flatnonzero(~_fine(view, rows[row], sparse=False))[0])
        faults[row] = _fault(view, feature, float(rows[row, feature]), sparse=False)
    return faults


def row_fault(view: DeclaredView, row: Row) -> Fault | None:
    """What is wrong with the values of a single row."""
    if isinstance(row, SparseRow):
        indptr = np.array([0, len(row.indices)], np.int64)
        return sparse_faults(view, indptr, row.indices, row.values).get(0)
    dense = np.frombuffer(row, view.floats) if isinstance(row, bytes) else row
    return dense_faults(view, dense.reshape(1, -1)).get(0)


def sparse_faults(
    view: DeclaredView, indptr: NDArray[np.int64], indices: NDArray[np.int64], values: Working
) -> dict[int, Fault]:
    """By row, what is wrong with it; rows as in CSR."""
    wrong = ~_fine(view, values, sparse=True) | (indices < 0) | (indices >= view.dimension)
    falling = indices[1:] <= indices[:-1]
    inner = indptr[(indptr > 0) & (indptr < len(indices))]
    falling[inner - 1] = False  # from the end of one row to the start of the next
    wrong[1:] |= falling
    faults = {}
    for row in np.unique(np.searchsorted(indptr, np.flatnonzero(wrong), side="right") - 1).tolist():
        part = slice(indptr[row], indptr[row + 1])
        faults[row] = _sparse_fault(view, indices[part], values[part])
    return faults


def _sparse_fault(view: DeclaredView, indices: NDArray[np.int64], values: Working) -> Fault:
    outside = np.flatnonzero((indices < 0) | (indices >= view.dimension))
    if len(outside):
        at = int(outside[0])
        return "bad_sparse", (
            f"view {view.name!r}: index {indices[at]} at `i`[{at}] "
            f"where {view.dimension} features are declared"
        )
    falling = np.flatnonzero(indices[1:] <= indices[:-1])
    if len(falling):
        at = int(falling[0]) + 1
        return "bad_sparse", (
            f"view {view.name!r}: index {indices[at]} at `i`[{at}] after {indices[at - 1]}; "
            "indices strictly increase"
        )
    entry = int(np.flatnonzero(~_fine(view, values, sparse=True))[0])
    return _fault(view, int(indices[entry]), float(values[entry]), sparse=True)


def usable(view: DeclaredView, values: Working, *, sparse: bool) -> bool:
    """Whether all values are in order: one pass mostly, two at most, nothing allocated."""
    if _plainly_usable(view, values):
        return True
    least, largest = float(values.min()), float(values.max())
    return bool(
        np.isfinite(least)
        and np.isfinite(largest)
        and (least >= 0 or not _positive(view, sparse))
        and (largest <= LARGEST or view.transform != "none")
    )


def _plainly_usable(view: DeclaredView, values: Working) -> bool:
    """Whether all are finite, not negative and not too large, which is always in order.

    The bits of such floats, as whole numbers, are ordered as the floats are; those of infinity, of
    NaN and of anything with a sign come after them.
    """
    if not (values.flags.c_contiguous and values.dtype.isnative):
        return False
    bits = np.dtype(f"u{values.itemsize}")
    most = float(np.finfo(values.dtype).max)
    if view.transform == "none":
        most = min(most, LARGEST)
    limit = np.array(most, values.dtype).view(bits)
    return bool(values.view(bits).max() <= limit)


def _fine(view: DeclaredView, values: Working, *, sparse: bool) -> Mask:
    """Value by value, whether it is in order."""
    fine: Any = np.isfinite(values)
    if _positive(view, sparse):
        fine &= values >= 0
    if view.transform == "none":
        fine &= values <= np.float64(LARGEST)
    return np.asarray(fine, bool)


def _positive(view: DeclaredView, sparse: bool) -> bool:
    return sparse or view.transform != "minmax"


def _fault(view: DeclaredView, feature: int, value: float, *, sparse: bool) -> Fault:
    place = view.place(feature)
    if not np.isfinite(value):
        return "not_finite", f"{place}: {value} in {view.dtype}"
    if value < 0:
        why = "a sparse pair" if sparse else f"transform {view.transform!r}"
        return "negative", f"{place}: {value!r}, which {why} does not allow"
    return "out_of_range", f"{place}: {value!r} is above {LARGEST:g}, the most for 'none'"
