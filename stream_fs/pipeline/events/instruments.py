"""What observers write: every metric that events change, and a line of the log.

The service exports them, with two metrics of its process that no event changes (see
`stream_fs.service.observability.metrics`). Base units; counters count what this process
has done since it acquired the partition: they start again when the partition moves, and its series
are removed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, NamedTuple, TypeAlias, TypeVar

Labels: TypeAlias = tuple[str, ...]

PARTITION: Final[Labels] = ("stream", "topic", "partition")
"""Labels of the metrics of one input partition."""
STREAM: Final[Labels] = ("stream",)
"""Labels of the metrics of the merge; one member of the group has its series."""


@dataclass(frozen=True, slots=True)
class LogLine:
    """A level of `logging`, the sentence, and the fields of a line of the log."""

    level: int
    text: str
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True, eq=False)
class Instrument:
    """A metric; `scope` are the labels that observers fill in, `labels` those of the event."""

    name: str
    help: str
    labels: Labels = ()
    scope: Labels = field(default=PARTITION, kw_only=True)


class Sample(NamedTuple):
    """One value for one series: added to a counter, set as a gauge, observed by a histogram."""

    instrument: Instrument
    value: float
    labels: Labels


class Counter(Instrument):
    """A sum that only grows."""

    __slots__ = ()

    def add(self, amount: float, *labels: str) -> Sample:
        """The counter, larger by `amount`."""
        return Sample(self, amount, labels)


class Gauge(Instrument):
    """A current value."""

    __slots__ = ()

    def set(self, value: float, *labels: str) -> Sample:
        """The gauge at `value`."""
        return Sample(self, value, labels)


@dataclass(frozen=True, slots=True, eq=False)
class Histogram(Instrument):
    """Durations, counted in buckets."""

    buckets: tuple[float, ...] = field(kw_only=True)

    def observe(self, value: float) -> Sample:
        """One more duration."""
        return Sample(self, value, ())


INSTRUMENTS: Final[list[Instrument]] = []
"""All of them, in the order of their declaration."""

T = TypeVar("T", bound=Instrument)


def _declared(instrument: T) -> T:
    INSTRUMENTS.append(instrument)
    return instrument


def _counter(name: str, help: str, *labels: str, scope: Labels = PARTITION) -> Counter:
    return _declared(Counter(name, help, labels, scope=scope))


def _gauge(name: str, help: str, *labels: str, scope: Labels = PARTITION) -> Gauge:
    return _declared(Gauge(name, help, labels, scope=scope))


def _histogram(
    name: str, help: str, buckets: tuple[float, ...], scope: Labels = PARTITION
) -> Histogram:
    return _declared(Histogram(name, help, scope=scope, buckets=buckets))


_SHORT: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_LONG: Final = (0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)

# --- records ---

RECORDS: Final = _counter(
    "stream_fs_records_total",
    "Records read, by outcome (good, bad); those read again after a restore count again.",
    "outcome",
)
BAD_RECORDS: Final = _counter(
    "stream_fs_bad_records_total",
    "Bad records read, by reason, regardless of dead_letters.policy.",
    "reason",
)
DEAD_LETTERS: Final = _counter(
    "stream_fs_dead_letters_total",
    "Bad records published to the dead-letter topic, by reason.",
    "reason",
)
MISSING_VIEWS: Final = _counter(
    "stream_fs_missing_views_total",
    "Good records without this view, in chunks that were not replayed.",
    "view",
)
IMPUTED_ROWS: Final = _counter(
    "stream_fs_imputed_rows_total",
    "Good records in which this view was missing and imputed by its running weighted mean, without "
    "replayed chunks. Records before the first one with the view are not imputed.",
    "view",
)
LAG: Final = _gauge(
    "stream_fs_lag_records",
    "Records of the input partition not read yet; 0 at its last stable offset. Above 0, may "
    "include transaction markers, and records of aborted and open transactions.",
)

# --- chunks ---

CHUNKS: Final = _counter(
    "stream_fs_chunks_total",
    "Chunks, by outcome: published, or replayed (published before the last restore).",
    "outcome",
)
CHUNK_FILL: Final = _gauge(
    "stream_fs_chunk_fill_ratio", "Good records in the open chunk, as a share of a full chunk."
)
UPDATE_SECONDS: Final = _histogram(
    "stream_fs_update_seconds", "Time to update the model with a chunk.", _SHORT
)
RANKING_SECONDS: Final = _histogram(
    "stream_fs_ranking_seconds",
    "Time to rank the features for a chunk's message, while the next chunk is processed.",
    _SHORT,
)

# --- the fit of the last chunk ---

ITERATIONS: Final = _gauge("stream_fs_iterations", "Iterations of the update with the last chunk.")
OBJECTIVE: Final = _gauge(
    "stream_fs_objective", "Objective of the last chunk after its last iteration."
)
ALPHA: Final = _gauge("stream_fs_alpha", "Weight α of the view.", "view")
IMPUTATION_WEIGHT: Final = _gauge(
    "stream_fs_imputation_weight",
    "Weight n/j of an imputed record at the end of the last chunk: n of j records have this view, "
    "with decay; 0 if the preset does not impute.",
    "view",
)
ORTHOGONALITY: Final = _gauge(
    "stream_fs_orthogonality_error", "‖UᵀU − I‖ of the view in the last chunk.", "view"
)
TOP_OVERLAP: Final = _gauge(
    "stream_fs_top_overlap_ratio",
    "Share of the view's leading features that were also leading in the previous ranking. Leading "
    "are the published features or, if more than half of the view is published, the first ten, at "
    "most half of the view.",
    "view",
)

# --- transactions ---

TRANSACTION_SECONDS: Final = _histogram(
    "stream_fs_transaction_seconds",
    "Duration of a transaction, which publishes one chunk or several of a backlog, including "
    "failed attempts and delays.",
    _SHORT,
)
TRANSACTION_FAILURES: Final = _counter(
    "stream_fs_transaction_failures_total",
    "Failed attempts of transactions, by outcome: retried, aborted (and sent again), given_up (an "
    "unscheduled snapshot), fenced (by another owner), undecided (the outcome of the commit is "
    "unknown, or the transaction timed out; the partition is acquired again).",
    "outcome",
)
LAST_COMMIT: Final = _gauge(
    "stream_fs_last_commit_timestamp_seconds", "Time of the last commit of a chunk."
)
SNAPSHOT_BYTES: Final = _gauge(
    "stream_fs_snapshot_bytes", "Size of the last snapshot of the model."
)

# --- lifecycle ---

PHASE: Final = _gauge(
    "stream_fs_task_phase", "1 for the current phase of the task, 0 for the others.", "phase"
)
RESTORES: Final = _counter(
    "stream_fs_restores_total",
    "Restored models, by outcome: new (no saved model), restored, or fallback (the newest snapshot "
    "was damaged, and the one before it was used).",
    "outcome",
)
RESTORE_SECONDS: Final = _histogram(
    "stream_fs_restore_seconds", "Time to acquire and restore a partition, without replay.", _LONG
)
RESTORE_FAILURES: Final = _counter(
    "stream_fs_restore_failures_total",
    "Failed attempts to read the state of a partition; each is retried.",
)
REPLAY_DIVERGENCES: Final = _counter(
    "stream_fs_replay_divergences_total",
    "Replayed rankings that differ from the published ones, as after a change of CPU, "
    "BLAS or output.",
)

# --- the merge ---

MERGED_RANKINGS: Final = _counter(
    "stream_fs_merged_rankings_total", "Merged rankings that were published.", scope=STREAM
)
MERGE_SECONDS: Final = _histogram(
    "stream_fs_merge_seconds",
    "Time to merge the models of all partitions and rank; the loop is blocked meanwhile.",
    _SHORT,
    STREAM,
)
MERGE_SOURCES: Final = _gauge(
    "stream_fs_merge_sources", "Partitions in the last merged ranking.", scope=STREAM
)
MERGE_PARTITIONS: Final = _gauge(
    "stream_fs_merge_partitions", "Partitions of the stream.", scope=STREAM
)
LAST_MERGE: Final = _gauge(
    "stream_fs_last_merge_timestamp_seconds",
    "Time of the last commit of a merged ranking.",
    scope=STREAM,
)
MERGE_SKIPS: Final = _counter(
    "stream_fs_merge_skips_total",
    "States of partitions that could not be merged, by reason: incompatible (other parameters), "
    "damaged, undecided (behind an open transaction).",
    "reason",
    scope=STREAM,
)
MERGE_FAILURES: Final = _counter(
    "stream_fs_merge_failures_total",
    "Failed attempts to merge, by outcome: retried, aborted (and sent again), fenced (by another "
    "owner), undecided (the outcome of the commit is unknown, or the transaction timed out; the "
    "merge is acquired again), refused (not repeated before a model changes).",
    "outcome",
    scope=STREAM,
)
