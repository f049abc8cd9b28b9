"""What the transactions of a partition hold: chunks, snapshots, and where a stream begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from stream_fs.checkpoint import Progress, SnapshotPlace
from stream_fs.pipeline.outcome import (
    Model,
    Outcome,
    progress_record,
    snapshot_records,
    unranked,
)
from stream_fs.pipeline.ports import Outbox, Partition
from stream_fs.pipeline.settings import Cut, StreamSettings


class Sender:
    """Sends within a transaction that somebody else begins and ends; returns what is then true."""

    def __init__(
        self,
        partition: Partition,
        settings: StreamSettings,
        outbox: Outbox,
        step: Callable[[str], None],
    ) -> None:
        """`step` is told how far a chunk's transaction is."""
        self._partition = partition
        self._settings = settings
        self._outbox = outbox
        self._step = step

    def start(self, model: Model) -> Progress:
        """Where a partition has begun at its end: the next owner must not begin at a later one.

        It is what `checkpoint reset --to-offset` leaves: an empty model, and no chunk yet.
        """
        progress, _ = self.snapshot(model, unranked(model))
        return progress

    def chunk(
        self, outcome: Outcome, before: Progress | None, saved: Cut | None
    ) -> tuple[Progress, int]:
        """Everything of a chunk; the progress with it, and the bytes of its snapshot.

        1. the snapshot, if one is due: its position goes into the progress record
        2. ranking, dead letters and progress

        `before` is the progress so far, `saved` how the chunks of its snapshots were cut.
        """
        self._step("begun")
        places = () if before is None else before.snapshots
        size = 0
        if self._due(outcome.model, places, saved):
            places, size = self._snapshot(outcome.model, places)
            self._step("snapshot sent")
        progress = Progress(
            chunk=outcome.model.state.chunk,
            from_offset=outcome.start,
            next_offset=outcome.model.next,
            snapshots=places,
            digest=outcome.digest,
            fingerprint=self._settings.params.fingerprint,
        )
        self._outbox.send(
            [*outcome.records, progress_record(self._settings, self._partition, progress)]
        )
        self._step("records sent")
        return progress, size

    def snapshot(self, model: Model, progress: Progress) -> tuple[Progress, int]:
        """A snapshot out of turn; the progress that names it, and its size in bytes."""
        places, size = self._snapshot(model, progress.snapshots)
        newer = replace(progress, snapshots=places)
        self._outbox.send([progress_record(self._settings, self._partition, newer)])
        return newer, size

    def _due(self, model: Model, places: tuple[SnapshotPlace, ...], saved: Cut | None) -> bool:
        """At the first chunk, every so many chunks, and where chunks begin to be cut otherwise.

        The latter because a replay cuts as its snapshot says.
        """
        if not places or not places[0].chunk or model.cut != saved:
            return True
        return model.state.chunk - places[0].chunk >= self._settings.checkpoint_every

    def _snapshot(
        self, model: Model, earlier: tuple[SnapshotPlace, ...]
    ) -> tuple[tuple[SnapshotPlace, ...], int]:
        """Send a snapshot; where it and the one before it lie, and its size in bytes."""
        number = earlier[0].number + 1 if earlier else 0
        records, size = snapshot_records(self._settings, self._partition, model, number)
        offset = self._outbox.send(records)[0]
        return (SnapshotPlace(number, model.state.chunk, offset), *earlier[:1]), size
