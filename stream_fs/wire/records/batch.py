"""Decoded records: compact rows by view, in the order of the stream, and how chunks come of them.

How records fall into batches depends on polling; a chunk must not. So a part remembers which of
its rows came as sparse pairs, and the form of a chunk is decided from its records alone: a view is
CSR in a chunk when every record that has it gave it as a sparse pair, or when less than an eighth
of the view's values in the chunk were given, and dense otherwise.
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

    `rows` (n × d) are the present rows, `present` (N) tells whose they are. Where any row came as a
    sparse pair all are CSR, and `sparse` (n) tells which did; rows that came dense then have every
    value stored, zeros too. `sparse` is None where all rows are dense.
    """

    rows: Rows
    present: Mask
    sparse: Mask | None = None

    def take(self, start: int, stop: int) -> BatchView:
        """The part of some records, as views of the arrays where they are dense."""
        first = int(np.count_nonzero(self.present[:start]))
        present = self.present[start:stop]
        last = first + int(np.count_nonzero(present))
        if self.sparse is None:
            return BatchView(self.rows[first:last], present)
        sparse = self.sparse[first:last]
        if not sparse.any():
            return BatchView(_spread(self._csr[first:last]), present)
        return BatchView(self._csr[first:last], present, sparse)

    @property
    def all_sparse(self) -> bool:
        """Whether there are rows, and every one came as a sparse pair."""
        return self.sparse is not None and bool(self.sparse.all())

    def dense(self) -> Any:
        """The rows as a plain matrix."""
        return self.rows if self.sparse is None else _spread(self._csr)

    @property
    def _csr(self) -> Any:
        return self.rows


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """The records of a batch that can be used, and why the others cannot.

    `good` are the positions of the former, increasing; `views` has every declared view; `bad` is in
    order of position.
    """

    good: Indices
    views: Mapping[str, BatchView]
    bad: tuple[BadRecord, ...] = ()

    def __len__(self) -> int:
        """How many records can be used."""
        return len(self.good)

    def take(self, start: int, stop: int) -> Batch:
        """Some of the good records, counted among the good ones; `bad` stays with the whole."""
        views = {name: part.take(start, stop) for name, part in self.views.items()}
        return Batch(self.good[start:stop], views)

    def missing(self) -> dict[str, int]:
        """By view, how many good records lack it."""
        return {
            name: len(self) - int(np.count_nonzero(part.present))
            for name, part in self.views.items()
        }


def to_chunk(parts: Sequence[Batch]) -> Chunk:
    """One chunk of the good records of several batches, in order.

    One concatenation per view; a single batch is not copied. The same records give the same chunk,
    however they were divided.
    """
    parts = [part for part in parts if len(part)]
    if not parts:
        raise InvalidChunk("there are no records")
    views = {}
    for name in parts[0].views:
        rows = _joined([part.views[name] for part in parts])
        if rows.present.any():
            views[name] = rows
    return Chunk(sum(len(part) for part in parts), views)


def _spread(rows: Any) -> Any:
    """CSR as a plain matrix, bit by bit: SciPy's own way adds to zeros, and so loses -0.0."""
    matrix = np.zeros(rows.shape, rows.dtype)
    matrix[np.repeat(np.arange(rows.shape[0]), np.diff(rows.indptr)), rows.indices] = rows.data
    return matrix


def _joined(parts: Sequence[BatchView]) -> ViewRows:
    present = parts[0].present if len(parts) == 1 else np.concatenate([p.present for p in parts])
    there: list[BatchView] = [part for part in parts if part.rows.shape[0]] or [parts[0]]
    matrices = [part.rows for part in there]
    rows: Any
    if all(part.all_sparse for part in there) or few_stored(matrices):
        rows = matrices[0] if len(there) == 1 else stacked(matrices)
    elif len(there) == 1:
        rows = there[0].dense()
    else:
        rows = np.concatenate([part.dense() for part in there])
    return ViewRows(rows, present)
