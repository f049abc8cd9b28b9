"""What the transactions of a partition hold: chunks, snapshots, and where a stream begins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import NamedTuple

from stream_fs.checkpoint import Progress, SnapshotPlace
from stream_fs.pipeline.legacy_state import marker, migration_records
from stream_fs.pipeline.model import (
    Model,
    PublishableChunk,
    progress_record,
    snapshot_records,
    unranked,
)
from stream_fs.pipeline.ports import OutgoingRecord, Partition, Publisher
from stream_fs.pipeline.settings import ChunkPolicy, StreamSettings


class SnapshotMark(NamedTuple):
    """A snapshot: of which chunk (0 where there is none yet), and how chunks were cut then."""

    chunk: int
    cut: ChunkPolicy | None

    @classmethod
    def of(cls, progress: Progress | None, cut: ChunkPolicy | None) -> SnapshotMark:
        """The newest one that a progress names, where chunks were cut in this way."""
        places = () if progress is None else progress.snapshots
        return cls(places[0].chunk if places else 0, cut)


class BatchContent:
    """Sends within a transaction that somebody else begins and ends; returns what is then true."""

    def __init__(
        self,
        partition: Partition,
        settings: StreamSettings,
        publisher: Publisher,
        step: Callable[[str], None],
    ) -> None:
        """`step` is told how far the transaction of chunks is."""
        self._partition = partition
        self._settings = settings
        self._publisher = publisher
        self._step = step
        self._first: tuple[OutgoingRecord, ...] = ()

    def start(self, model: Model) -> Progress:
        """Record the owner and the first offset, with an empty model, before the first chunk.

        The owner, because another stream with the same name or group may start at the same time;
        the offset, because a partition that begins at its end must not begin at a later one again.
        `checkpoint reset --to-offset` leaves the same.
        """
        self._publisher.send(self._first)
        progress, _ = self.snapshot(model, unranked(self._settings, model))
        return progress

    def withdraw(self) -> None:
        """Delete the record of the start."""
        self._publisher.send([progress_record(self._settings, self._partition, None)])

    def of(self, publisher: Publisher) -> BatchContent:
        """A sender of the same partition through another publisher."""
        return BatchContent(self._partition, self._settings, publisher, self._step)

    def mark(self) -> None:
        """Send the marker for older releases with the first progress record of this owner."""
        self._first = (marker(self._settings, self._partition),)

    def migrate(self, model: Model, progress: Progress, legacy: Sequence[bytes]) -> Progress:
        """Write the model under this owner's keys, and delete it under the legacy keys."""
        self._publisher.send(migration_records(self._settings, self._partition, legacy))
        begun = replace(progress, snapshots=(), owner=self._settings.owner)
        return self.snapshot(model, begun)[0]

    def chunks(
        self, outcomes: Sequence[PublishableChunk], before: Progress, saved: ChunkPolicy | None
    ) -> tuple[Progress, int]:
        """Everything of chunks in a row; the progress with the last, and its snapshot's bytes.

        1. the snapshot of the last, if one is due: its position goes into the progress record
        2. the ranking and the dead letters of each, and the progress

        `before` is the progress so far, `saved` how the chunks of its snapshots were cut.
        """
        self._step("begun")
        last = outcomes[-1]
        places, size = before.snapshots, 0
        if self.due(last.model.state.chunk, last.model.cut, SnapshotMark.of(before, saved)):
            places, size = self._snapshot(last.model, places)
            self._step("snapshot sent")
        progress = Progress(
            chunk=last.model.state.chunk,
            from_offset=last.start,
            next_offset=last.model.next,
            snapshots=places,
            digest=last.digest,
            fingerprint=self._settings.params.fingerprint,
            owner=self._settings.owner,
        )
        records = [record for outcome in outcomes for record in outcome.records]
        self._publisher.send([*records, progress_record(self._settings, self._partition, progress)])
        self._step("records sent")
        return progress, size

    def due(self, chunk: int, cut: ChunkPolicy | None, saved: SnapshotMark) -> bool:
        """Whether a chunk has a snapshot, where it is the last of those that are sent together.

        At the first chunk, every so many chunks, and where chunks begin to be cut otherwise. The
        latter because a replay cuts as its snapshot says.
        """
        if not saved.chunk or cut != saved.cut:
            return True
        return chunk - saved.chunk >= self._settings.checkpoint_every

    def snapshot(self, model: Model, progress: Progress) -> tuple[Progress, int]:
        """A snapshot out of turn; the progress that names it, and its size in bytes."""
        places, size = self._snapshot(model, progress.snapshots)
        newer = replace(progress, snapshots=places)
        self._publisher.send([progress_record(self._settings, self._partition, newer)])
        return newer, size

    def _snapshot(
        self, model: Model, earlier: tuple[SnapshotPlace, ...]
    ) -> tuple[tuple[SnapshotPlace, ...], int]:
        """Send a snapshot; where it and the one before it lie, and its size in bytes."""
        number = earlier[0].number + 1 if earlier else 0
        records, size = snapshot_records(self._settings, self._partition, model, number)
        offset = self._publisher.send(records)[0]
        return (SnapshotPlace(number, model.state.chunk, offset), *earlier[:1]), size
