"""Message values in, arrays out: `RecordDecoder`.

values ─ present values ─ reader, block by block ─ collectors ─ batch
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

import numpy as np

from stream_fs.errors import InvalidParameter
from stream_fs.records import BadRecord, Reason, printable
from stream_fs.selector.arrays import Indices
from stream_fs.wire.declared import DeclaredView, Limits
from stream_fs.wire.records.batch import Batch
from stream_fs.wire.records.collector import ViewCollector
from stream_fs.wire.records.formats import DEFAULT_FORMAT, FORMATS, RecordFormat, resemblance
from stream_fs.wire.records.parser import Fault

BLOCK_BYTES = 8 << 20
"""Bytes read at a time: enough for many records, and the memory that the reader keeps."""


class RecordDecoder:
    """Decodes batches of values. Every unusable value becomes a `BadRecord`.

    Whether a value is bad, and its rows, depend on that value alone. Between batches the decoder
    remembers only the field orders of producers, which affect its speed.
    """

    def __init__(
        self,
        views: Sequence[DeclaredView],
        format: RecordFormat = DEFAULT_FORMAT,
        limits: Limits | None = None,
    ) -> None:
        self._limits = Limits() if limits is None else limits
        self._views = {view.name: view for view in views}
        if not views or len(self._views) != len(views):
            raise InvalidParameter("at least one view must be declared, and each only once")
        if len(views) > self._limits.views:
            raise InvalidParameter(f"{len(views)} views exceed the limit of {self._limits.views}")
        if format not in FORMATS:
            raise InvalidParameter(f"format must be {' or '.join(FORMATS)}, got {format!r}")
        self._format = format
        self._reader = FORMATS[format].reader(views, self._limits)

    def decode(self, values: Sequence[bytes | None]) -> Batch:
        """The good records of these values, and what is wrong with the others. Never raises."""
        faults: dict[int, Fault] = {}
        present, positions, lengths = self._present_values(values, faults)
        blocks = list(_blocks(lengths))
        # A number takes at least one byte, which bounds how many there are.
        numbers = int(lengths.sum()) if len(blocks) > 1 else 0
        collectors = {
            name: ViewCollector(view, min(len(positions), numbers // view.dimension))
            for name, view in self._views.items()
        }
        for block in blocks:
            self._read(present[block], lengths[block], positions[block], collectors, faults)
        for collector in collectors.values():
            for position, fault in collector.faults().items():
                faults.setdefault(position, fault)
        good = np.ones(len(values), bool)
        good[list(faults)] = False
        return Batch(
            np.flatnonzero(good),
            {name: collector.batch_view(good) for name, collector in collectors.items()},
            tuple(_bad_record(position, *faults[position]) for position in sorted(faults)),
        )

    def _present_values(
        self, values: Sequence[bytes | None], faults: dict[int, Fault]
    ) -> tuple[Sequence[bytes], Indices, Indices]:
        """The values that exist and are not too large; their positions and lengths."""
        positions = np.arange(len(values))
        present = cast("Sequence[bytes]", values)
        try:
            lengths = np.fromiter(map(len, present), np.intp, len(present))
        except TypeError:  # faster than a search for None in every batch
            for position in [p for p, value in enumerate(values) if value is None]:
                faults[position] = ("tombstone", "the message has no value")
            positions = np.delete(positions, list(faults))
            present = [value for value in values if value is not None]
            lengths = np.array([len(value) for value in present], np.intp)
        limit = self._limits.record_bytes
        large = lengths > limit
        if large.any():
            for row in np.flatnonzero(large).tolist():
                position = int(positions[row])
                faults[position] = ("too_large", f"{lengths[row]} bytes, more than {limit}")
            present = [present[row] for row in np.flatnonzero(~large).tolist()]
            positions, lengths = positions[~large], lengths[~large]
        return present, positions, lengths

    def _read(
        self,
        values: Sequence[bytes],
        lengths: Indices,
        positions: Indices,
        collectors: Mapping[str, ViewCollector],
        faults: dict[int, Fault],
    ) -> None:
        """Read one block. A scope of its own: the next block uses the same memory."""
        parsed = self._reader.read(values, lengths)
        for name, collector in collectors.items():
            collector.add(parsed.blocks[name], parsed.rows[name], positions)
        for record, (reason, detail) in parsed.faults.items():
            if reason == "malformed":
                detail += resemblance(values[record], self._format)
            faults[int(positions[record])] = (reason, detail)


def _bad_record(position: int, reason: Reason, detail: str) -> BadRecord:
    return BadRecord(position, reason, printable(detail))


def _blocks(lengths: Indices) -> Iterator[slice]:
    """Runs of values of at most `BLOCK_BYTES` together, or of one larger value."""
    ends, first = np.cumsum(lengths), 0
    while first < len(lengths):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + BLOCK_BYTES, side="right")), first + 1)
        yield slice(first, last)
        first = last
