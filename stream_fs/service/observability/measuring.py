"""From what happens in the pipeline to metrics."""

from __future__ import annotations

import platform
from collections.abc import Callable
from importlib.metadata import version
from typing import Final, assert_never, get_args

from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.service.observability.metrics import Metrics

_PHASES: Final = get_args(events.Phase)


class MetricsObserver:
    """An observer of the pipeline; `clock` gives seconds since 1970."""

    def __init__(self, metrics: Metrics, stream: str, clock: Callable[[], float]) -> None:
        self._metrics = metrics
        self._stream = stream
        self._clock = clock
        self._restored_partitions: set[Partition] = set()
        self._fill: dict[Partition, tuple[int, int]] = {}
        metrics.build.info({"version": version("stream-fs"), "python": platform.python_version()})
        metrics.ready.labels(stream).set(0)

    def __call__(self, event: events.Event) -> None:
        """Take note of an event."""
        match event:
            case events.PhaseChanged():
                self._phase(event)
            case events.RecordsRead():
                self._read(event)
            case events.ChunkUpdated():
                self._updated(event)
            case events.ChunkCommitted():
                self._committed(event)
            case events.SnapshotCommitted():
                self._snapshot(event.partition, event.snapshot_bytes)
            case events.TransactionFailed():
                self._failure(event.partition, event.outcome)
            case events.Fenced():
                self._failure(event.partition, "undecided" if event.outcome_unknown else "fenced")
            case events.PartitionReleased():
                self._gone(event.partition)
            case events.Restored():
                self._restored(event)
            case events.RestoreFailed():
                self._metrics.restore_failures.labels(*self._of(event.partition)).inc()
            case events.ReplayDiverged():
                self._metrics.replay_divergences.labels(*self._of(event.partition)).inc()
            case events.GroupOffsetDiffers() | events.MergeAcquired():
                pass  # only the log tells of it
            case events.MergedCommitted():
                self._merged(event)
            case events.SourceSkipped():
                self._metrics.merge_skips.labels(self._stream, event.reason).inc()
            case events.MergeFailed():
                self._metrics.merge_failures.labels(self._stream, event.outcome).inc()
            case events.MergeReleased():
                self._metrics.forget_merge(self._stream)
            case _:
                assert_never(event)

    def ready_when(self, check: Callable[[], bool]) -> None:
        """Ask this, at every scrape, whether the process is ready."""
        self._metrics.ready.labels(self._stream).set_function(check)

    def lag(self, partition: Partition, records: int) -> None:
        """Set the lag of an input partition, unless another member holds it by now."""
        if partition in self._restored_partitions:
            self._metrics.lag.labels(*self._of(partition)).set(records)

    def _of(self, partition: Partition) -> tuple[str, str, str]:
        return (self._stream, partition.topic, str(partition.number))

    def _phase(self, event: events.PhaseChanged) -> None:
        for phase in _PHASES:
            labels = (*self._of(event.partition), phase)
            self._metrics.phase.labels(*labels).set(phase == event.phase)

    def _read(self, event: events.RecordsRead) -> None:
        of = self._of(event.partition)
        self._metrics.records.labels(*of, "good").inc(event.good)
        self._metrics.records.labels(*of, "bad").inc(sum(event.bad.values()))
        for reason, count in event.bad.items():
            self._metrics.bad_records.labels(*of, reason).inc(count)
        self._filled(event.partition, event.waiting, event.size)

    def _filled(self, partition: Partition, waiting: int, size: int) -> None:
        self._fill[partition] = (waiting, size)
        # More than one chunk may wait at once.
        self._metrics.chunk_fill.labels(*self._of(partition)).set(min(1.0, waiting / size))

    def _updated(self, event: events.ChunkUpdated) -> None:
        of, report = self._of(event.partition), event.report
        self._metrics.update.labels(*of).observe(event.seconds)
        self._metrics.iterations.labels(*of).set(report.iterations)
        if report.objective:
            self._metrics.objective.labels(*of).set(report.objective[-1])
        for view, error in report.orthogonality.items():
            self._metrics.orthogonality.labels(*of, view).set(error)
        for view, alpha in report.alpha.items():
            self._metrics.alpha.labels(*of, view).set(alpha)
        for view, imputation in report.imputed.items():
            self._metrics.imputation_weight.labels(*of, view).set(imputation.weight)
        if event.replayed:
            self._metrics.chunks.labels(*of, "replayed").inc()
        else:
            for view, share in report.missing.items():
                self._metrics.missing_views.labels(*of, view).inc(round(share * report.rows))
            for view, imputation in report.imputed.items():
                self._metrics.imputed_rows.labels(*of, view).inc(imputation.rows)
        if event.partition in self._fill:
            waiting, _ = self._fill[event.partition]
            # The first chunk is larger than those that follow.
            self._filled(event.partition, max(0, waiting - report.rows), event.size)

    def _committed(self, event: events.ChunkCommitted) -> None:
        of = self._of(event.partition)
        self._metrics.chunks.labels(*of, "published").inc()
        self._metrics.ranking.labels(*of).observe(event.ranking_seconds)
        if event.seconds is not None:
            self._metrics.transaction.labels(*of).observe(event.seconds)
        self._metrics.last_commit.labels(*of).set(self._clock())
        for view, overlap in event.overlap.items():
            self._metrics.top_overlap.labels(*of, view).set(overlap)
        for reason, count in event.letters.items():
            self._metrics.dead_letters.labels(*of, reason).inc(count)
        if event.snapshot_bytes:
            self._snapshot(event.partition, event.snapshot_bytes)

    def _snapshot(self, partition: Partition, size: int) -> None:
        self._metrics.snapshot_size.labels(*self._of(partition)).set(size)

    def _failure(self, partition: Partition, outcome: str) -> None:
        self._metrics.transaction_failures.labels(*self._of(partition), outcome).inc()

    def _restored(self, event: events.Restored) -> None:
        of = self._of(event.partition)
        outcome = "restored" if event.chunk else "new"
        if event.fallback is not None:
            outcome = "fallback"
        self._metrics.restores.labels(*of, outcome).inc()
        self._metrics.restore.labels(*of).observe(event.seconds)
        self._restored_partitions.add(event.partition)

    def _merged(self, event: events.MergedCommitted) -> None:
        self._metrics.merged.labels(self._stream).inc()
        self._metrics.merge.labels(self._stream).observe(event.seconds)
        self._metrics.merge_sources.labels(self._stream).set(len(event.parts))
        self._metrics.merge_partitions.labels(self._stream).set(event.partitions)
        self._metrics.last_merge.labels(self._stream).set(self._clock())

    def _gone(self, partition: Partition) -> None:
        self._restored_partitions.discard(partition)
        self._fill.pop(partition, None)
        self._metrics.forget(self._stream, partition.topic, partition.number)
