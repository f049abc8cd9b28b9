"""Observer that keeps the status of the process for the status page and `/api/status`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import replace
from importlib.metadata import version
from typing import Final

from stream_fs.pipeline.events import Event, MergeEvent, PartitionEvent
from stream_fs.pipeline.events.status import (
    MergeStatus,
    PartitionStatus,
    StatusContext,
    ViewLayout,
    milliseconds,
)
from stream_fs.pipeline.ports import Partition
from stream_fs.service.configuration import Configuration
from stream_fs.service.configuration.secrets import redacted
from stream_fs.service.observability.status_document import (
    SCHEMA,
    Health,
    Status,
    dead_letters,
    partition_entry,
    rankings,
)
from stream_fs.wire.rankings.message import published_counts

_VERSION: Final = version("stream-fs")


class StatusObserver:
    """Observer of the pipeline; `clock` gives seconds since 1970."""

    def __init__(self, configuration: Configuration, clock: Callable[[], float]) -> None:
        self._stream = configuration.stream.name
        self._views = _view_layouts(configuration)
        self._secrets = configuration.secrets()
        self._clock = clock
        self._started = clock()
        self._lock = threading.Lock()
        self._partitions: dict[Partition, PartitionStatus] = {}
        self._merge: MergeStatus | None = None
        self._counts: dict[str, int] = {}
        """Partitions of the stream by input topic; empty if they are unknown."""

    def stream_partitions(self, counts: Mapping[str, int]) -> None:
        """Set the number of partitions of every input topic, including those of other processes."""
        with self._lock:
            self._counts = dict(counts)

    def __call__(self, event: Event) -> None:
        """Update the status of the partition, or of the merge."""
        context = StatusContext(self._clock(), self._views)
        if isinstance(event, PartitionEvent):
            self._update_partition(event, context)
        elif isinstance(event, MergeEvent):
            self._merge = None if event.released else event.update(self._merge, context)

    def _update_partition(self, event: PartitionEvent, context: StatusContext) -> None:
        partition = event.partition
        if event.released:
            with self._lock:
                self._partitions.pop(partition, None)
            return
        before = self._partitions.get(partition) or PartitionStatus(since=context.now)
        after = event.update(before, context)
        with self._lock:
            self._partitions[partition] = after
            if partition.topic in self._counts:  # partitions may be added while the process runs
                known = self._counts[partition.topic]
                self._counts[partition.topic] = max(known, partition.number + 1)

    def status(self, health: Health, connection_error: str | None) -> Status:
        """The document; `connection_error` is why there is no connection to the broker."""
        with self._lock:
            partitions, merge = sorted(self._partitions.items()), self._merge
            total = sum(self._counts.values()) or None
        now = self._clock()
        return Status(
            schema=SCHEMA,
            version=_VERSION,
            stream=self._stream,
            time=milliseconds(now),
            uptime_seconds=round(max(0.0, now - self._started), 3),
            health=replace(health, reason=self._redacted(health.reason)),
            partitions=[
                partition_entry(
                    partition, status, now, self._redacted(connection_error or status.error)
                )
                for partition, status in partitions
            ],
            rankings=rankings(merge, partitions, self._views),
            dead_letters=dead_letters(partitions, now),
            stream_partitions=total,
        )

    def _redacted(self, reason: str | None) -> str | None:
        return None if reason is None else redacted(reason, self._secrets)


def _view_layouts(configuration: Configuration) -> dict[str, ViewLayout]:
    settings = configuration.stream_settings()
    counts = published_counts(settings.params, settings.output_top)
    return {
        view.name: ViewLayout(view.dimension, view.shape, counts[view.name])
        for view in configuration.views
    }
