"""The rows of one view: collected from blocks and single records, checked, made into a batch."""

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
from stream_fs.wire.records.parser import Fault, Row, RowBlock, SparseRow


class ViewCollector:
    """Collects the rows of one view, block after block.

    Memory is allocated for `capacity` dense rows at once, so that later blocks find room; 0 where
    there is only one block.
    """

    def __init__(self, view: DeclaredView, capacity: int) -> None:
        self._view = view
        self._capacity = capacity
        self._dense: Working = np.empty((0, view.dimension), view.floats)
        self._count = 0
        self._dense_positions: list[Indices] = []
        self._sparse: list[SparseRow] = []
        self._sparse_positions: list[int] = []

    def add(
        self, blocks: Sequence[RowBlock], rows: Sequence[tuple[int, Row]], positions: Indices
    ) -> None:
        """Add the rows of one block of values; `positions` are those of its records."""
        dense = [*blocks, *_dense_block(self._view, rows)]
        for record, row in rows:
            if isinstance(row, SparseRow):
                self._sparse_positions.append(int(positions[record]))
                self._sparse.append(row)
        if dense:
            block = _merged(dense)
            self._dense_positions.append(positions[block.records])
            self._append(block.rows)

    def _append(self, rows: Working) -> None:
        """Put the rows of a block after those of earlier ones; a single block is not copied."""
        start, end = self._count, self._count + len(rows)
        self._count = end
        if end > self._capacity:
            self._dense = rows
            return
        if not start:
            self._dense = np.empty((self._capacity, self._view.dimension), self._view.floats)
        self._dense[start:end] = rows

    def faults(self) -> dict[int, Fault]:
        """By position, what is wrong with the values of a record in this view."""
        positions = self._all_dense_positions()
        faults = {
            int(positions[row]): fault
            for row, fault in dense_faults(self._view, self._dense[: self._count]).items()
        }
        if self._sparse:
            for row, fault in sparse_faults(self._view, *self._sparse_arrays()).items():
                faults[self._sparse_positions[row]] = fault
        return faults

    def batch_view(self, good: Mask) -> BatchView:
        """The rows of the good records among all records of the batch."""
        positions, rows = self._all_dense_positions(), self._dense[: self._count]
        kept = good[positions]
        if not kept.all():
            positions, rows = positions[kept], rows[kept]
        rows = rows.astype(rows.dtype.newbyteorder("="), copy=False)
        present = np.zeros(len(good), bool)
        present[positions] = True
        kept_sparse = [
            (position, row)
            for position, row in zip(self._sparse_positions, self._sparse, strict=True)
            if good[position]
        ]
        if not kept_sparse:
            return BatchView(rows, present[good])
        self._sparse_positions = [position for position, _ in kept_sparse]
        self._sparse = [row for _, row in kept_sparse]
        present[self._sparse_positions] = True
        sparse = np.zeros(len(good), bool)
        sparse[self._sparse_positions] = True
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
        row_starts = np.concatenate([[0], np.cumsum(counts)])
        shape = (len(sparse), self._view.dimension)
        return BatchView(
            scipy.sparse.csr_array((data, columns, row_starts), shape=shape), present, sparse
        )

    def _all_dense_positions(self) -> Indices:
        if not self._dense_positions:
            return np.zeros(0, np.intp)
        return np.concatenate(self._dense_positions)

    def _sparse_arrays(self) -> tuple[NDArray[np.int64], NDArray[np.int64], Any]:
        """The sparse rows as CSR: row starts, indices, values."""
        lengths = [len(row.indices) for row in self._sparse]
        indptr = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        return (
            indptr,
            np.concatenate([row.indices for row in self._sparse]),
            np.concatenate([row.values for row in self._sparse]),
        )


def _dense_block(view: DeclaredView, rows: Sequence[tuple[int, Row]]) -> list[RowBlock]:
    """The dense ones among single rows, as one block."""
    dense = [(record, row) for record, row in rows if not isinstance(row, SparseRow)]
    if not dense:
        return []
    packed = [row if isinstance(row, bytes) else row.tobytes() for _, row in dense]
    content = bytearray().join(packed)
    matrix = np.frombuffer(content, view.floats).reshape(len(dense), view.dimension)
    return [RowBlock(np.array([record for record, _ in dense], np.intp), matrix)]


def _merged(blocks: Sequence[RowBlock]) -> RowBlock:
    """One block, in the order of the records."""
    if len(blocks) == 1:
        return blocks[0]
    records = np.concatenate([block.records for block in blocks])
    order = np.argsort(records)
    return RowBlock(records[order], np.concatenate([block.rows for block in blocks])[order])


def row_fault(view: DeclaredView, row: Row) -> Fault | None:
    """What is wrong with the values of a single row."""
    if isinstance(row, SparseRow):
        indptr = np.array([0, len(row.indices)], np.int64)
        return sparse_faults(view, indptr, row.indices, row.values).get(0)
    dense = np.frombuffer(row, view.floats) if isinstance(row, bytes) else row
    return dense_faults(view, dense.reshape(1, -1)).get(0)


def dense_faults(view: DeclaredView, rows: Working) -> dict[int, Fault]:
    """By row, what is wrong with its values."""
    if rows.size == 0 or _all_valid(view, rows):
        return {}
    faults = {}
    for row in np.flatnonzero(~_valid(view, rows, sparse=False).all(axis=1)).tolist():
        feature = int(np.flatnonzero(~_valid(view, rows[row], sparse=False))[0])
        faults[row] = _value_fault(view, feature, float(rows[row, feature]), sparse=False)
    return faults


def sparse_faults(
    view: DeclaredView, indptr: NDArray[np.int64], indices: NDArray[np.int64], values: Working
) -> dict[int, Fault]:
    """By row, what is wrong with its indices or values; rows as in CSR."""
    wrong = ~_valid(view, values, sparse=True) | (indices < 0) | (indices >= view.dimension)
    falling = indices[1:] <= indices[:-1]
    inner_starts = indptr[(indptr > 0) & (indptr < len(indices))]
    falling[inner_starts - 1] = False  # from the end of one row to the start of the next
    wrong[1:] |= falling
    faults = {}
    for row in np.unique(np.searchsorted(indptr, np.flatnonzero(wrong), side="right") - 1).tolist():
        entries = slice(indptr[row], indptr[row + 1])
        faults[row] = _sparse_row_fault(view, indices[entries], values[entries])
    return faults


def _sparse_row_fault(view: DeclaredView, indices: NDArray[np.int64], values: Working) -> Fault:
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
    at = int(np.flatnonzero(~_valid(view, values, sparse=True))[0])
    return _value_fault(view, int(indices[at]), float(values[at]), sparse=True)


def _value_fault(view: DeclaredView, feature: int, value: float, *, sparse: bool) -> Fault:
    label = view.feature_label(feature)
    if not np.isfinite(value):
        return "not_finite", f"{label}: {value} in {view.dtype}"
    if value < 0:
        rule = "a sparse pair" if sparse else f"transform {view.transform!r}"
        return "negative", f"{label}: {value!r}, which {rule} does not allow"
    return "out_of_range", f"{label}: {value!r} is above {LARGEST:g}, the most for 'none'"


def _all_valid(view: DeclaredView, values: Working) -> bool:
    """Whether all dense values are valid: one pass mostly, two at most, nothing allocated."""
    if _all_valid_as_bits(view, values):
        return True
    least, largest = float(values.min()), float(values.max())
    return bool(
        np.isfinite(least)
        and np.isfinite(largest)
        and (least >= 0 or not _non_negative(view, sparse=False))
        and (largest <= LARGEST or view.transform != "none")
    )


def _all_valid_as_bits(view: DeclaredView, values: Working) -> bool:
    """Whether all are finite, not negative and not too large, which every transform allows.

    The bits of such floats, as whole numbers, are ordered as the floats are; those of infinity, of
    NaN and of negative numbers come after them.
    """
    if not (values.flags.c_contiguous and values.dtype.isnative):
        return False
    bits = np.dtype(f"u{values.itemsize}")
    most = float(np.finfo(values.dtype).max)
    if view.transform == "none":
        most = min(most, LARGEST)
    limit = np.array(most, values.dtype).view(bits)
    return bool(values.view(bits).max() <= limit)


def _valid(view: DeclaredView, values: Working, *, sparse: bool) -> Mask:
    """Value by value, whether it is valid."""
    valid: Any = np.isfinite(values)
    if _non_negative(view, sparse):
        valid &= values >= 0
    if view.transform == "none":
        valid &= values <= np.float64(LARGEST)
    return np.asarray(valid, bool)


def _non_negative(view: DeclaredView, sparse: bool) -> bool:
    return sparse or view.transform != "minmax"
