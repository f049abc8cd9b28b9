"""The newest models of all partitions, read from their snapshots and kept up to date.

A partition whose state has not changed takes hardly any time, and a snapshot is read only once.
States that cannot be read are reported, and do not block other partitions.
"""

from __future__ import annotations

from collections.abc import Sequence

from stream_fs.checkpoint import SnapshotPlace
from stream_fs.errors import CheckpointError, ConfigurationChanged
from stream_fs.pipeline import events
from stream_fs.pipeline.checkpoint_reader import read_usable_snapshot
from stream_fs.pipeline.model import Model, decode_model
from stream_fs.pipeline.ports import Partition, StateLog, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.state_owner import locate
from stream_fs.pipeline.transaction import Runtime, Steps

TIMEOUT_SECONDS, TIMEOUT_STEPS = 10.0, 200
"""How long reading one partition may take, since an open transaction hides what follows it. Both
limits have to be exceeded: seconds may pass between two steps."""


class TransactionPending(Exception):
    """An open transaction in a state partition hides the records behind it."""


class SnapshotCache:
    """The models of the partitions whose newest snapshot holds at least one chunk."""

    def __init__(
        self,
        topics: Sequence[str],
        settings: StreamSettings,
        transport: Transport,
        runtime: Runtime,
    ) -> None:
        self._topics = tuple(topics)
        self._settings = settings
        self._group_offset = transport.group_offset
        self._runtime = runtime
        self._reader = transport.state_log_reader()
        self._ends: dict[Partition, int] = {}  # of the states that were read
        self._places: dict[Partition, SnapshotPlace] = {}
        self._skipped: dict[Partition, events.SourceSkipped] = {}
        self.partitions = 0
        """Number of partitions at the last refresh."""
        self.models: dict[Partition, Model] = {}
        self.unread: set[Partition] = set()
        """Partitions that the last refresh could not read, and no earlier one has read."""

    def count_partitions(self) -> int:
        """The number of partitions that the stream has now."""
        return len(self._reader.ends(self._topics))

    def refresh(self) -> Steps[None]:
        """Read every state that has changed, one after the other."""
        ends = self._reader.ends(self._topics)
        self.partitions = len(ends)
        self.unread.clear()
        for removed in self._places.keys() - ends.keys():
            self._discard(removed)
        yield None
        for partition in sorted(ends):
            if ends[partition] == self._ends.get(partition, 0):
                continue
            try:
                yield from self._limited(self._read(partition))
            except TransactionPending:
                self._skip(partition, "undecided", "a transaction is open in its state")
                if partition not in self._places:
                    self.unread.add(partition)
            except ConfigurationChanged as error:
                self._discard(partition)
                self._ends[partition] = ends[partition]  # it can only change with a new record
                self._skip(partition, "incompatible", str(error))
            except CheckpointError as error:
                self._skip(partition, "damaged", str(error))
            else:
                self._ends[partition] = ends[partition]
                self._skipped.pop(partition, None)

    def close(self) -> None:
        """Close the clients."""
        self._reader.close()

    def _read(self, partition: Partition) -> Steps[None]:
        log = self._reader.log(partition)
        try:
            yield from self._read_newest(partition, log)
        finally:
            log.close()

    def _read_newest(self, partition: Partition, log: StateLog) -> Steps[None]:
        found = yield from locate(log, partition, self._settings.owner, self._group_offset)
        progress = found.progress
        if progress is None:  # no full chunk yet, or reset
            self._discard(partition)
            return
        if progress.snapshots[0] == self._places.get(partition):
            return
        restored, _ = yield from read_usable_snapshot(
            log, found.keys, progress, self._settings.params
        )
        model = decode_model(restored)
        self._places[partition] = progress.snapshots[0]
        if model.state.chunk:
            self.models[partition] = model
        else:  # the model of a start, or of a reset
            self.models.pop(partition, None)

    def _discard(self, partition: Partition) -> None:
        self.models.pop(partition, None)
        self._places.pop(partition, None)
        self._ends.pop(partition, None)

    def _skip(self, partition: Partition, reason: events.SkipReason, detail: str) -> None:
        """Report a state once, until it can be read again or the reason changes."""
        event = events.SourceSkipped(partition, reason, detail)
        if self._skipped.get(partition) != event:
            self._skipped[partition] = event
            self._runtime.observe(event)

    def _limited(self, steps: Steps[None]) -> Steps[None]:
        """The steps, up to the limits of one partition."""
        until = self._runtime.clock() + TIMEOUT_SECONDS
        try:
            for number, _ in enumerate(steps):
                if number > TIMEOUT_STEPS and self._runtime.clock() > until:
                    raise TransactionPending
                yield None
        finally:
            steps.close()
