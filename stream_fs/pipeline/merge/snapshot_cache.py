"""The newest models of all partitions, as their snapshots have them, kept up to date.

A look at a partition is short when nothing has happened there; its snapshot is read only when it is
another one than before. What cannot be read is told, and does not hold up the others.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stream_fs.checkpoint import SnapshotPlace
from stream_fs.errors import CheckpointError, ConfigurationChanged
from stream_fs.pipeline import events
from stream_fs.pipeline.checkpoint_reader import read_usable_snapshot
from stream_fs.pipeline.model import Model, model_of
from stream_fs.pipeline.ports import Partition, StateLog, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.state_owner import locate
from stream_fs.pipeline.transaction import Clock, Steps

PATIENCE_SECONDS, PATIENCE_STEPS = 10.0, 200
"""How long one partition may take: a transaction that its owner left open hides what is new. Steps
count as well, for there may be seconds between them."""


class TransactionPending(Exception):
    """A transaction is open in a state partition; what lies behind it cannot be read yet."""


class SnapshotCache:
    """The models by partition; `models` has those that have a snapshot with at least one chunk."""

    def __init__(
        self,
        topics: Sequence[str],
        settings: StreamSettings,
        transport: Transport,
        clock: Clock,
        skipped: Callable[[events.SourceSkipped], None],
    ) -> None:
        self._topics = tuple(topics)
        self._settings = settings
        self._group_offset = transport.group_offset
        self._clock = clock
        self._skipped = skipped
        self._logs = transport.state_log_reader()
        self._ends: dict[Partition, int] = {}  # of the states as they were looked at
        self._places: dict[Partition, SnapshotPlace] = {}
        self._told: dict[Partition, events.SourceSkipped] = {}
        self.partitions = 0
        """How many the stream has, as of the last look."""
        self.models: dict[Partition, Model] = {}
        self.unread: set[Partition] = set()
        """Partitions that could not be read now, and were not read before."""

    def count(self) -> int:
        """How many partitions the stream has now."""
        return len(self._logs.ends(self._topics))

    def look(self) -> Steps:
        """Bring everything up to date, one partition after the other."""
        ends = self._logs.ends(self._topics)
        self.partitions = len(ends)
        self.unread.clear()
        for gone in self._places.keys() - ends.keys():
            self._forget(gone)
        yield
        for partition in sorted(ends):
            if ends[partition] == self._ends.get(partition, 0):
                continue
            try:
                yield from self._patiently(self._read(partition))
            except TransactionPending:
                self._skip(partition, "undecided", "a transaction is open in its state")
                if partition not in self._places:
                    self.unread.add(partition)
            except ConfigurationChanged as error:
                self._forget(partition)
                self._ends[partition] = ends[partition]  # it will not change by itself
                self._skip(partition, "incompatible", str(error))
            except CheckpointError as error:
                self._skip(partition, "damaged", str(error))
            else:
                self._ends[partition] = ends[partition]
                self._told.pop(partition, None)

    def close(self) -> None:
        """Let go."""
        self._logs.close()

    def _read(self, partition: Partition) -> Steps:
        log = self._logs.log(partition)
        try:
            yield from self._newest(partition, log)
        finally:
            log.close()

    def _newest(self, partition: Partition, log: StateLog) -> Steps:
        found = yield from locate(log, partition, self._settings.owner, self._group_offset)
        progress = found.progress
        if progress is None:  # it never had a full chunk, or was reset
            self._forget(partition)
            return
        if progress.snapshots[0] == self._places.get(partition):
            return
        restored, _ = yield from read_usable_snapshot(
            log, found.keys, progress, self._settings.params
        )
        model = model_of(restored)
        self._places[partition] = progress.snapshots[0]
        if model.state.chunk:
            self.models[partition] = model
        else:  # an operator has made it begin anew
            self.models.pop(partition, None)

    def _forget(self, partition: Partition) -> None:
        self.models.pop(partition, None)
        self._places.pop(partition, None)
        self._ends.pop(partition, None)

    def _skip(self, partition: Partition, reason: events.SkipReason, detail: str) -> None:
        """Tell once, until it can be read again or something else is wrong."""
        event = events.SourceSkipped(partition, reason, detail)
        if self._told.get(partition) != event:
            self._told[partition] = event
            self._skipped(event)

    def _patiently(self, steps: Steps) -> Steps:
        until = self._clock() + PATIENCE_SECONDS
        try:
            for number, _ in enumerate(steps):
                if number > PATIENCE_STEPS and self._clock() > until:
                    raise TransactionPending
                yield
        finally:
            steps.close()
