"""Message values in, arrays out: `RecordDecoder`.

take stock ─ read block by block ─ judge values ─ batch
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast, get_args

import numpy as np

from stream_fs.errors import InvalidParameter
from stream_fs.records import BadRecord, Reason, printable
from stream_fs.selector.arrays import Indices
from stream_fs.wire.declared import DeclaredView, Format, Limits
from stream_fs.wire.records.batch import Batch
from stream_fs.wire.records.collector import ViewCollector
from stream_fs.wire.records.json_reader import JsonReader
from stream_fs.wire.records.msgpack_reader import MsgpackReader
from stream_fs.wire.records.parser import Fault

BLOCK_BYTES = 8 << 20
"""Bytes read at a time: enough for many records, and no more memory than that is kept."""


class RecordDecoder:
    """Decodes batches of values. Every value that cannot be used becomes a `BadRecord`.

    A value's verdict and its rows depend on that value alone. Between batches the decoder remembers
    nothing but the orders in which producers write, and these affect its speed only.
    """

    def __init__(
        self,
        views: Sequence[DeclaredView],
        format: Format = "msgpack",
        limits: Limits | None = None,
    ) -> None:
        self._limits = Limits() if limits is None else limits
        self._views = {view.name: view for view in views}
        if not views or len(self._views) != len(views):
            raise InvalidParameter("declare at least one view, and none of them twice")
        if len(views) > self._limits.views:
            raise InvalidParameter(f"{len(views)} views exceed the limit of {self._limits.views}")
        if format not in get_args(Format):
            raise InvalidParameter(f"format must be msgpack or json, got {format!r}")
        self._reader = JsonReader(views) if format == "json" else MsgpackReader(views, self._limits)

    def decode(self, values: Sequence[bytes | None]) -> Batch:
        """All that can be used of these values, and why the rest cannot. Never raises."""
        bad: dict[int, Fault] = {}
        kept, at, lengths = self._take_stock(values, bad)
        blocks = list(_blocks(lengths))
        # A number takes at least one byte: so many can there be.
        numbers = int(lengths.sum()) if len(blocks) > 1 else 0
        collectors = {
            name: ViewCollector(view, min(len(at), numbers // view.dimension))
            for name, view in self._views.items()
        }
        for block in blocks:
            self._read(kept[block], lengths[block], at[block], collectors, bad)
        for collector in collectors.values():
            for position, fault in collector.faults().items():
                bad.setdefault(position, fault)
        good = np.ones(len(values), bool)
        good[list(bad)] = False
        return Batch(
            np.flatnonzero(good),
            {name: collector.part(good) for name, collector in collectors.items()},
            tuple(_bad_record(position, *bad[position]) for position in sorted(bad)),
        )

    def _take_stock(
        self, values: Sequence[bytes | None], bad: dict[int, Fault]
    ) -> tuple[Sequence[bytes], Indices, Indices]:
        """The values that are there and not too large; their positions and lengths."""
        at = np.arange(len(values))
        kept = cast("Sequence[bytes]", values)
        try:
            lengths = np.fromiter(map(len, kept), np.intp, len(kept))
        except TypeError:  # faster than to look for None each time
            for position in [p for p, value in enumerate(values) if value is None]:
                bad[position] = ("tombstone", "the message has no value")
            at = np.delete(at, list(bad))
            kept = [value for value in values if value is not None]
            lengths = np.array([len(value) for value in kept], np.intp)
        most = self._limits.record_bytes
        large = lengths > most
        if large.any():
            for row in np.flatnonzero(large).tolist():
                bad[int(at[row])] = ("too_large", f"{lengths[row]} bytes, more than {most}")
            kept = [kept[row] for row in np.flatnonzero(~large).tolist()]
            at, lengths = at[~large], lengths[~large]
        return kept, at, lengths

    def _read(
        self,
        values: Sequence[bytes],
        lengths: Indices,
        places: Indices,
        collectors: Mapping[str, ViewCollector],
        bad: dict[int, Fault],
    ) -> None:
        """Read one block; its own scope, as the next one uses the same memory."""
        found = self._reader.read(values, lengths)
        for name, collector in collectors.items():
            collector.add(found.together[name], found.single[name], places)
        for record, fault in found.refused.items():
            bad[int(places[record])] = fault


def _bad_record(position: int, reason: Reason, detail: str) -> BadRecord:
    return BadRecord(position, reason, printable(detail))


def _blocks(lengths: Indices) -> Iterator[slice]:
    """Runs of values that together have no more than a block's bytes, or are one value."""
    ends, first = np.cumsum(lengths), 0
    while first < len(lengths):
        before = int(ends[first - 1]) if first else 0
        last = max(int(np.searchsorted(ends, before + BLOCK_BYTES, side="right")), first + 1)
        yield slice(first, last)
        first = last
