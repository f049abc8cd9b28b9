"""From what happens in the pipeline to the status.

The loop tells it of events; web threads ask it for the status, of which they get a copy of their
own. What it keeps is bounded by the number of partitions and views, and goes with a partition.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Final, assert_never

from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.service.configuration import Configuration
from stream_fs.service.configuration.secrets import redacted
from stream_fs.service.status import seen as seeing
from stream_fs.service.status.document import SCHEMA, Health, Snapshot, Status
from stream_fs.service.status.ranked import declared, ranked_views
from stream_fs.service.status.seen import Seen, SeenMerge, milliseconds
from stream_fs.service.status.telling import dead_letters, partition_status, rankings

_VERSION: Final = version("stream-fs")


class StatusObserver:
    """An observer of the pipeline; `clock` gives seconds since 1970."""

    def __init__(self, configuration: Configuration, clock: Callable[[], float]) -> None:
        self._stream = configuration.stream.name
        self._views = declared(configuration)
        self._secrets = configuration.secrets()
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self._partitions: dict[Partition, Seen] = {}
        self._merge: SeenMerge | None = None
        self._counts: dict[str, int] = {}
        """By input topic, the partitions of the stream; empty where they are not known."""

    def stream_partitions(self, counts: Mapping[str, int]) -> None:
        """Set the number of partitions of every input topic, those of other processes included."""
        with self._lock:
            self._counts = dict(counts)

    def __call__(self, event: events.Event) -> None:
        """Take note of an event."""
        match event:
            case events.MergedCommitted():
                views = ranked_views(event, {}, self._views)
                self._merge = seeing.merged(self._merge, event, self._clock(), views)
            case events.MergeGone():
                self._merge = None
            case events.MergeTaken() | events.SourceSkipped() | events.MergeFailed():
                pass  # what is ours goes on
            case _:
                self._of_task(event)

    def _of_task(self, event: events.TaskEvent) -> None:
        before = self._partitions.get(event.partition)
        if isinstance(event, events.PartitionGone):
            with self._lock:
                self._partitions.pop(event.partition, None)
            return
        after = self._after(before or Seen(since=self._clock()), event)
        topic, number = event.partition.topic, event.partition.number
        with self._lock:
            self._partitions[event.partition] = after
            if topic in self._counts:  # partitions may be added while the process runs
                self._counts[topic] = max(self._counts[topic], number + 1)

    def lag(self, partition: Partition, records: int) -> None:
        """Set the lag of an input partition, unless another member holds it by now."""
        seen = self._partitions.get(partition)
        if seen is not None:
            with self._lock:
                self._partitions[partition] = replace(seen, lag=records)

    def status(self, health: Health, complaint: str | None) -> Status:
        """All that is known; `complaint` says why there is no connection to the broker."""
        with self._lock:
            partitions, merge = sorted(self._partitions.items()), self._merge
            total = sum(self._counts.values()) or None
        now = self._clock()
        return Status(
            schema=SCHEMA,
            version=_VERSION,
            stream=self._stream,
            time=milliseconds(now),
            uptime_seconds=round(max(0.0, now - self._began), 3),
            health=replace(health, reason=self._safe(health.reason)),
            partitions=[
                partition_status(partition, seen, now, self._safe(complaint or seen.trouble))
                for partition, seen in partitions
            ],
            rankings=rankings(merge, partitions, self._views),
            dead_letters=dead_letters(partitions, now),
            stream_partitions=total,
        )

    def _after(self, seen: Seen, event: events.TaskEvent) -> Seen:
        match event:
            case events.PhaseChanged():
                return seeing.phase_changed(seen, event)
            case events.RecordsRead():
                return seeing.read(seen, event, self._clock())
            case events.ChunkUpdated():
                return seeing.updated(seen, event)
            case events.ChunkCommitted():
                views = ranked_views(event, event.missing, self._views)
                return seeing.committed(seen, event, self._clock(), views)
            case events.SnapshotCommitted():
                return replace(seen, snapshot=Snapshot(event.chunk, event.snapshot_bytes))
            case events.TransactionFailed():
                # A snapshot that is given up keeps nothing waiting.
                trouble = seen.trouble if event.outcome == "given_up" else event.error
                return replace(seen, trouble=trouble)
            case events.Fenced():
                return replace(seen, fenced=not event.given_up, trouble=event.error)
            case events.Restored():
                return seeing.restored(seen, event)
            case events.RestoreFailed():
                return replace(seen, trouble=event.error)
            case events.PartitionGone() | events.OffsetsDiffer() | events.ReplayDiverged():
                return seen
            case _:
                assert_never(event)

    def _safe(self, reason: str | None) -> str | None:
        return None if reason is None else redacted(reason, self._secrets)
