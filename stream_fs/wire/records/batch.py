"""Decoded records: compact rows by view, in the order of the stream; `to_chunk` joins them.

The division of records into batches depends on polling; the chunk must not. So a batch remembers
which rows were received as sparse pairs, and the form of a chunk follows from its records alone: a
view is CSR where all its records have sparse pairs, or where less than an eighth of its values are
stored, and dense otherwise.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from stream_fs.errors import InvalidChunk
from stream_fs.records import BadRecord
from stream_fs.selector import Chunk
from stream_fs.selector.arrays import Indices, Mask, Rows
from stream_fs.selector.chunk import ViewRows, few_stored, stacked


@dataclass(frozen=True, slots=True, eq=False)
class BatchView:
    """One view of a batch.

    `rows` (n × d) are the present rows, `present` (N) marks their records. Where any row was
    received as a sparse pair all are CSR, and `sparse` (n) marks those; the other rows then have
    every value stored, zeros too. `sparse` is None where all rows are dense.
    """

    rows: Rows
    present: Mask
    sparse: Mask | None = None

    def take(self, start: int, stop: int) -> BatchView:
        """The rows of some records; dense rows are not copied."""
        first = int(np.count_nonzero(self.present[:start]))
        present = self.present[start:stop]
        last = first + int(np.count_nonzero(present))
        if self.sparse is None:
            return BatchView(self.rows[first:last], present)
        sparse = self.sparse[first:last]
        if not sparse.any():
            return BatchView(_densify(self._csr[first:last]), present)
        return BatchView(self._csr[first:last], present, sparse)

    @property
    def all_sparse(self) -> bool:
        """Whether there are rows, and each was received as a sparse pair."""
        return self.sparse is not None and bool(self.sparse.all())

    def dense(self) -> Any:
        """The rows as a dense matrix."""
        return self.rows if self.sparse is None else _densify(self._csr)

    @property
    def _csr(self) -> Any:
        return self.rows


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The good records of a batch, and the bad ones.

    `good` are the positions of the good records, increasing; `views` has the rows of every declared
    view; `bad` is in order of position.
    """

    good: Indices
    views: Mapping[str, BatchView]
    bad: tuple[BadRecord, ...] = ()

    def __len__(self) -> int:
        """Number of good records."""
        return len(self.good)

    def take(self, start: int, stop: int) -> Batch:
        """Good records `start` to `stop`, counted among the good ones; without `bad`."""
        views = {name: view.take(start, stop) for name, view in self.views.items()}
        return Batch(self.good[start:stop], views)

    def missing(self) -> dict[str, int]:
        """By view, the number of good records without it."""
        return {
            name: len(self) - int(np.count_nonzero(view.present))
            for name, view in self.views.items()
        }


def to_chunk(batches: Sequence[Batch]) -> Chunk:
    """One chunk of the good records of several batches, in order.

    One concatenation per view; a single batch is not copied. Equal records give an equal chunk,
    however they were divided.
    """
    batches = [batch for batch in batches if len(batch)]
    if not batches:
        raise InvalidChunk("there are no records")
    views = {}
    for name in batches[0].views:
        rows = _concatenate([batch.views[name] for batch in batches])
        if rows.present.any():
            views[name] = rows
    return Chunk(sum(map(len, batches)), views)


def _concatenate(views: Sequence[BatchView]) -> ViewRows:
    present = views[0].present if len(views) == 1 else np.concatenate([v.present for v in views])
    filled = [view for view in views if view.rows.shape[0]] or [views[0]]
    matrices = [view.rows for view in filled]
    rows: Any
    if all(view.all_sparse for view in filled) or few_stored(matrices):
        rows = matrices[0] if len(filled) == 1 else stacked(matrices)
    elif len(filled) == 1:
        rows = filled[0].dense()
    else:
        rows = np.concatenate([view.dense() for view in filled])
    return ViewRows(rows, present)


def _densify(rows: Any) -> Any:
    """CSR as a dense matrix, bit for bit: SciPy's method adds to zeros, which loses -0.0."""
    matrix = np.zeros(rows.shape, rows.dtype)
    matrix[np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices] = rows.data
    return matrix
