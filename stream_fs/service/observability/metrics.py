"""Every metric, declared in one place, each with its meaning; base units.

Counters count what this process has done since it took a partition over: they begin anew when the
partition moves, and its series go when it does. `measuring` fills them.
"""

from __future__ import annotations

from typing import Final, TypeAlias, TypeVar

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
Labels: TypeAlias = tuple[str, ...]

PARTITION: Final[Labels] = ("stream", "topic", "partition")
"""The labels of everything that belongs to one input partition."""
STREAM: Final[Labels] = ("stream",)
"""The labels of the merge, which belongs to all of them; one member of the group has its series."""

_SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_LONG: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The metrics of one process, in a registry of its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        # The time at which a series began would double their number, and nobody asks for it.
        disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs has no types
        self._registry = registry
        self._by_partition: list[MetricWrapperBase] = []
        self._by_stream: list[MetricWrapperBase] = []

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
        self.imputed_rows = self._counter(
            "stream_fs_imputed_rows_total",
            "Good records without this view that were imputed by its running weighted mean, in "
            "chunks folded in for the first time; those before the first record that has the view "
            "are not.",
            "view",
        )
        self.lag = self._gauge(
            "stream_fs_lag_records",
            "Records in the input partition that were not read yet: 0 at the last stable offset. "
            "Above 0, transaction markers, aborted and undecided records may be among them.",
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
            "stream_fs_update_seconds", "Time to fold a chunk into the model.", _SHORT
        )
        self.ranking = self._histogram(
            "stream_fs_ranking_seconds",
            "Time to rank the features for a chunk's message, beside the update of the next one.",
            _SHORT,
        )

        # --- the fit of the last chunk ---
        self.iterations = self._gauge("stream_fs_iterations", "Iterations of the last chunk.")
        self.objective = self._gauge(
            "stream_fs_objective", "Objective of the last chunk after its last iteration."
        )
        self.alpha = self._gauge("stream_fs_alpha", "Weight α of the view.", "view")
        self.imputation_weight = self._gauge(
            "stream_fs_imputation_weight",
            "Weight n/j of an imputed record at the end of the last chunk: n of j records have "
            "this view, with decay; 0 if the preset does not impute.",
            "view",
        )
        self.orthogonality = self._gauge(
            "stream_fs_orthogonality_error", "‖UᵀU − I‖ of the view in the last chunk.", "view"
        )
        self.top_overlap = self._gauge(
            "stream_fs_top_overlap_ratio",
            "Share of the view's leading features that were leading in the ranking before: of the "
            "published ones or, where more than half of the view is published, of the first ten, "
            "at most half of the view.",
            "view",
        )

        # --- transactions ---
        self.transaction = self._histogram(
            "stream_fs_transaction_seconds",
            "Time to publish a chunk, or several of a backlog together; failed attempts and pauses "
            "included.",
            _SHORT,
        )
        self.transaction_failures = self._counter(
            "stream_fs_transaction_failures_total",
            "Transactions that did not come through at once, by outcome: retried, aborted (and "
            "sent again), given_up (a snapshot out of turn), fenced (by another owner), undecided "
            "(the outcome of the commit is unknown, or the transaction timed out, so the partition "
            "is taken over anew).",
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

        # --- the merge ---
        self.merged = self._counter(
            "stream_fs_merged_rankings_total", "Merged rankings that were published.", of=STREAM
        )
        self.merge = self._histogram(
            "stream_fs_merge_seconds",
            "Time to merge the models of all partitions and rank, while the tasks wait.",
            _SHORT,
            of=STREAM,
        )
        self.merge_sources = self._gauge(
            "stream_fs_merge_sources", "Partitions that are in the last merged ranking.", of=STREAM
        )
        self.merge_partitions = self._gauge(
            "stream_fs_merge_partitions", "Partitions that the stream has.", of=STREAM
        )
        self.last_merge = self._gauge(
            "stream_fs_last_merge_timestamp_seconds",
            "When the last merged ranking was committed.",
            of=STREAM,
        )
        self.merge_skips = self._counter(
            "stream_fs_merge_skips_total",
            "Times that the state of a partition could not be merged, by reason: incompatible "
            "(other parameters made it), damaged, undecided (behind an open transaction).",
            "reason",
            of=STREAM,
        )
        self.merge_failures = self._counter(
            "stream_fs_merge_failures_total",
            "Attempts to merge that failed, by outcome: retried, aborted (and sent again), fenced "
            "(by another owner), undecided (the outcome of the commit is unknown, or the "
            "transaction timed out, so the merge is taken over anew), refused (until there is "
            "something else to merge).",
            "outcome",
            of=STREAM,
        )

    def forget(self, stream: str, topic: str, partition: int) -> None:
        """Remove every series of a partition."""
        labels = {"stream": stream, "topic": topic, "partition": str(partition)}
        for metric in self._by_partition:
            metric.remove_by_labels(labels)

    def forget_merge(self, stream: str) -> None:
        """Remove every series of the merge."""
        for metric in self._by_stream:
            metric.remove_by_labels({"stream": stream})

    def _counter(self, name: str, meaning: str, *labels: str, of: Labels = PARTITION) -> Counter:
        return self._kept(Counter(name, meaning, (*of, *labels), registry=self._registry), of)

    def _gauge(self, name: str, meaning: str, *labels: str, of: Labels = PARTITION) -> Gauge:
        return self._kept(Gauge(name, meaning, (*of, *labels), registry=self._registry), of)

    def _histogram(
        self, name: str, meaning: str, buckets: tuple[float, ...], of: Labels = PARTITION
    ) -> Histogram:
        made = Histogram(name, meaning, of, buckets=buckets, registry=self._registry)
        return self._kept(made, of)

    def _kept(self, metric: Metric, of: Labels) -> Metric:
        (self._by_partition if of == PARTITION else self._by_stream).append(metric)
        return metric
