"""The rows of one view, collected from blocks and single records, and made into a part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse
from numpy.typing import NDArray

from stream_fs.selector.arrays import Indices, Mask, Working
from stream_fs.selector.chunk import LARGEST
from stream_fs.wire.declared import DeclaredView
from stream_fs.wire.records.batch import BatchView
from stream_fs.wire.records.parser import Fault, Row, Rows, SparseRow


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


class ViewCollector:
    """Takes the rows of one view, block after block.

    Room is made for `most` dense rows at once, so that later blocks find it; 0 where there is but
    one block.
    """

    def __init__(self, view: DeclaredView, most: int) -> None:
        self._view = view
        self._most = most
        self._rows: Working = np.empty((0, view.dimension), view.floats)
        self._filled = 0
        self._at: list[Indices] = []
        self._sparse_at: list[int] = []
        self._sparse: list[SparseRow] = []

    def add(
        self, together: Sequence[Rows], single: Sequence[tuple[int, Row]], places: Indices
    ) -> None:
        """What was found in one block; `places` are the positions of its records."""
        pieces = [*together, *_dense(self._view, single)]
        for record, row in single:
            if isinstance(row, SparseRow):
                self._sparse_at.append(int(places[record]))
                self._sparse.append(row)
        if pieces:
            block = _in_order(pieces)
            self._at.append(places[block.at])
            self._keep(block.rows)

    def _keep(self, rows: Working) -> None:
        """Put the rows of a block behind those of earlier ones; the only block needs no copy."""
        start, end = self._filled, self._filled + len(rows)
        self._filled = end
        if end > self._most:
            self._rows = rows
            return
        if not start:
            self._rows = np.empty((self._most, self._view.dimension), self._view.floats)
        self._rows[start:end] = rows

    def faults(self) -> dict[int, Fault]:
        """By position, what is wrong with a record's values in this view."""
        at = self._dense_at()
        found = {
            int(at[row]): fault
            for row, fault in dense_faults(self._view, self._rows[: self._filled]).items()
        }
        if self._sparse:
            for row, fault in sparse_faults(self._view, *self._sparse_arrays()).items():
                found[self._sparse_at[row]] = fault
        return found

    def part(self, good: Mask) -> BatchView:
        """The rows of the good ones among all records of the batch."""
        at, rows, size = self._dense_at(), self._rows[: self._filled], len(good)
        kept_rows = good[at]
        if not kept_rows.all():
            at, rows = at[kept_rows], rows[kept_rows]
        rows = rows.astype(rows.dtype.newbyteorder("="), copy=False)
        present = np.zeros(size, bool)
        present[at] = True
        kept = [(a, row) for a, row in zip(self._sparse_at, self._sparse, strict=True) if good[a]]
        if not kept:
            return BatchView(rows, present[good])
        self._sparse_at, self._sparse = [a for a, _ in kept], [row for _, row in kept]
        present[self._sparse_at] = True
        sparse = np.zeros(size, bool)
        sparse[self._sparse_at] = True
        return self._mixed(rows, present[good], sparse[present & good])

    def _mixed(self, dense: Working, present: Mask, sparse: Mask) -> BatchView:
        """CSR of both kinds of row; of the dense ones every value is stored."""
        indptr, indices, values = self._sparse_arrays()
        counts = np.full(len(sparse), self._view.dimension)
        counts[sparse] = np.diff(indptr)
        from_pair = np.repeat(sparse, counts)
        data = np.empty(len(from_pair), dense.dtype)
        columns = np.empty(len(from_pair), np.int32)
        data[from_pair], columns[from_pair] = values, indices
        data[~from_pair] = dense.ravel()
        columns[~from_pair] = np.tile(np.arange(self._view.dimension, dtype=np.int32), len(dense))
        places = np.concatenate([[0], np.cumsum(counts)])
        shape = (len(sparse), self._view.dimension)
        return BatchView(
            scipy.sparse.csr_array((data, columns, places), shape=shape), present, sparse
        )

    def _dense_at(self) -> Indices:
        return np.concatenate(self._at) if self._at else np.zeros(0, np.intp)

    def _sparse_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
        lengths = [len(row.indices) for row in self._sparse]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return (
            indptr,
            np.concatenate([row.indices for row in self._sparse]),
            np.concatenate([row.values for row in self._sparse]),
        )


def _dense(view: DeclaredView, single: Sequence[tuple[int, Row]]) -> list[Rows]:
    """Single rows that are dense, as one matrix."""
    dense = [(at, row) for at, row in single if not isinstance(row, SparseRow)]
    if not dense:
        return []
    packed = [row if isinstance(row, bytes) else row.tobytes() for _, row in dense]
    joined = bytearray().join(packed)
    rows = np.frombuffer(joined, view.floats).reshape(len(dense), view.dimension)
    return [Rows(np.array([at for at, _ in dense], np.intp), rows)]


def _in_order(pieces: Sequence[Rows]) -> Rows:
    if len(pieces) == 1:
        return pieces[0]
    at = np.concatenate([piece.at for piece in pieces])
    order = np.argsort(at)
    return Rows(at[order], np.concatenate([piece.rows for piece in pieces])[order])
