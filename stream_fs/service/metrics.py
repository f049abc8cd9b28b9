"""Every metric, declared in one place, each with its meaning; base units.

Counters count what this process has done since it took a partition over: they begin anew when the
partition moves, and its series go when it does. Who fills them is `stream_fs.service.measuring`.
"""

from __future__ import annotations

from typing import Final, TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    disable_created_metrics,
)
from prometheus_client.metrics import MetricWrapperBase

Metric = TypeVar("Metric", bound=MetricWrapperBase)

PARTITION: Final = ("stream", "topic", "partition")
"""The labels of everything that belongs to one input partition."""

_SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_LONG: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The metrics of one process, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # The time at which a series began would double their number, and nobody asks for it.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs has no types
        self._registry = registry
        self._by_partition: list[MetricWrapperBase] = []

        self.build = Info("stream_fs_build", "Version of the program, always 1.", registry=registry)
        self.ready = Gauge(
            "stream_fs_ready",
            "1 when every assigned partition is restored and a broker answers, as /readyz says.",
            ("stream",),
            registry=registry,
        )

        # --- records ---
        self.records = self._counter(
            "stream_fs_records_total",
            "Records read, by outcome (good, bad); those read again after a restore count again.",
            "outcome",
        )
        self.bad_records = self._counter(
            "stream_fs_bad_records_total",
            "Bad records read, by reason, whatever the policy does with them.",
            "reason",
        )
        self.dead_letters = self._counter(
            "stream_fs_dead_letters_total",
            "Bad records published to the dead-letter topic, by reason.",
            "reason",
        )
        self.missing_views = self._counter(
            "stream_fs_missing_views_total",
            "Good records without this view, in chunks folded in for the first time.",
            "view",
        )
        self.lag = self._gauge(
            "stream_fs_lag_records", "Records in the input partition that were not read yet."
        )

        # --- chunks ---
        self.chunks = self._counter(
            "stream_fs_chunks_total",
            "Chunks, by outcome: published, or replayed (published by an earlier life).",
            "outcome",
        )
        self.chunk_fill = self._gauge(
            "stream_fs_chunk_fill_ratio", "Good records in the open chunk, of those it needs."
        )
        self.update = self._histogram(
            "stream_fs_update_seconds", "Time to fold a chunk into the model and rank.", _SHORT
        )

        # --- the fit of the last chunk ---
        self.iterations = self._gauge("stream_fs_iterations", "Iterations of the last chunk.")
        self.objective = self._gauge(
            "stream_fs_objective", "Objective of the last chunk after its last iteration."
        )
        self.alpha = self._gauge("stream_fs_alpha", "Weight α of the view.", "view")
        self.orthogonality = self._gauge(
            "stream_fs_orthogonality_error", "‖UᵀU − I‖ of the view in the last chunk.", "view"
        )
        self.top_overlap = self._gauge(
            "stream_fs_top_overlap_ratio",
            "Share of the view's previous top features that are still among them.",
            "view",
        )

        # --- transactions ---
        self.transaction = self._histogram(
            "stream_fs_transaction_seconds",
            "Time to publish a chunk, failed attempts and pauses included.",
            _SHORT,
        )
        self.transaction_failures = self._counter(
            "stream_fs_transaction_failures_total",
            "Transactions that did not come through at once, by outcome: retried, aborted (and "
            "sent again), given_up (a snapshot out of turn), fenced (by another owner).",
            "outcome",
        )
        self.last_commit = self._gauge(
            "stream_fs_last_commit_timestamp_seconds", "When the last chunk was committed."
        )
        self.snapshot_size = self._gauge(
            "stream_fs_snapshot_bytes", "Size of the last snapshot of the model."
        )

        # --- life ---
        self.phase = self._gauge(
            "stream_fs_task_phase",
            "1 for the phase that the task is in, 0 for the others.",
            "phase",
        )
        self.restores = self._counter(
            "stream_fs_restores_total",
            "Models taken over, by outcome: new (there was none), restored, or fallback (from the "
            "snapshot before the newest, which was damaged).",
            "outcome",
        )
        self.restore = self._histogram(
            "stream_fs_restore_seconds",
            "Time to take a partition over, replay not included.",
            _LONG,
        )
        self.restore_failures = self._counter(
            "stream_fs_restore_failures_total",
            "Attempts to read the state of a partition that failed; each is made again.",
        )
        self.replay_divergences = self._counter(
            "stream_fs_replay_divergences_total",
            "Replayed rankings that differ from the published ones (another CPU, BLAS or output).",
        )

    def forget(self, stream: str, topic: str, partition: int) -> None:
        """Remove every series of a partition."""
        labels = {"stream": stream, "topic": topic, "partition": str(partition)}
        for metric in self._by_partition:
            metric.remove_by_labels(labels)

    def _counter(self, name: str, meaning: str, *labels: str) -> Counter:
        return self._kept(Counter(name, meaning, (*PARTITION, *labels), registry=self._registry))

    def _gauge(self, name: str, meaning: str, *labels: str) -> Gauge:
        return self._kept(Gauge(name, meaning, (*PARTITION, *labels), registry=self._registry))

    def _histogram(self, name: str, meaning: str, buckets: tuple[float, ...]) -> Histogram:
        return self._kept(
            Histogram(name, meaning, PARTITION, buckets=buckets, registry=self._registry)
        )

    def _kept(self, metric: Metric) -> Metric:
        self._by_partition.append(metric)
        return metric
