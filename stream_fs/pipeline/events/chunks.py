"""Events in the course of a chunk: records read, model updated, transaction committed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from stream_fs.pipeline.events.event import PartitionEvent
from stream_fs.pipeline.events.instruments import (
    ALPHA,
    BAD_RECORDS,
    CHUNK_FILL,
    CHUNKS,
    DEAD_LETTERS,
    IMPUTATION_WEIGHT,
    IMPUTED_ROWS,
    ITERATIONS,
    LAG,
    LAST_COMMIT,
    MISSING_VIEWS,
    OBJECTIVE,
    ORTHOGONALITY,
    RANKING_SECONDS,
    RECORDS,
    SNAPSHOT_BYTES,
    TOP_OVERLAP,
    TRANSACTION_FAILURES,
    TRANSACTION_SECONDS,
    UPDATE_SECONDS,
    LogLine,
    Sample,
)
from stream_fs.pipeline.events.status import (
    DeadLetterCount,
    HistoryPoint,
    OpenChunk,
    PartitionStatus,
    PublishedRanking,
    SnapshotInfo,
    StatusContext,
    append_point,
    shown_views,
)
from stream_fs.selector import Ranking, Report
from stream_fs.selector.imputation import Imputation


@dataclass(frozen=True, slots=True)
class RecordsRead(PartitionEvent):
    """Messages were decoded: `good` ones, and bad ones by reason.

    `waiting` good ones are in the open chunk, which is complete with `size`.
    """

    good: int
    bad: Mapping[str, int]
    waiting: int
    size: int

    def samples(self, now: float) -> Iterable[Sample]:
        yield RECORDS.add(self.good, "good")
        yield RECORDS.add(sum(self.bad.values()), "bad")
        for reason, count in self.bad.items():
            yield BAD_RECORDS.add(count, reason)
        yield _fill(self.waiting, self.size)

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        bad = sum(self.bad.values())
        return replace(
            status,
            good=status.good + self.good,
            bad=Counter(status.bad) + Counter(self.bad) if bad else status.bad,
            recent=status.recent.add(context.now, self.good + bad),
            chunk=OpenChunk(self.waiting, self.size),
        )


@dataclass(frozen=True, slots=True)
class LagMeasured(PartitionEvent):
    """Records of the input partition that can be read and were not."""

    lag: int

    def samples(self, now: float) -> Iterable[Sample]:
        return (LAG.set(self.lag),)

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        return replace(status, lag=self.lag)


@dataclass(frozen=True, slots=True)
class ChunkUpdated(PartitionEvent):
    """The model was updated with a chunk; a `replayed` one was published before the last restore.

    `waiting` good records are left for the next chunk, which is complete with `size`.
    """

    report: Report
    seconds: float
    replayed: bool
    waiting: int
    size: int

    def log(self) -> LogLine:
        return self.line(
            logging.DEBUG,
            "chunk replayed" if self.replayed else "chunk updated",
            chunk=self.report.chunk,
            rows=self.report.rows,
            iterations=self.report.iterations,
            converged=self.report.converged,
            seconds=self.seconds,
        )

    def samples(self, now: float) -> Iterable[Sample]:
        report = self.report
        yield UPDATE_SECONDS.observe(self.seconds)
        yield ITERATIONS.set(report.iterations)
        if report.objective:
            yield OBJECTIVE.set(report.objective[-1])
        for view, error in report.orthogonality.items():
            yield ORTHOGONALITY.set(error, view)
        for view, alpha in report.alpha.items():
            yield ALPHA.set(alpha, view)
        for view, imputation in report.imputed.items():
            yield IMPUTATION_WEIGHT.set(imputation.weight, view)
        if self.replayed:
            yield CHUNKS.add(1, "replayed")
        else:
            for view, share in report.missing.items():
                yield MISSING_VIEWS.add(round(share * report.rows), view)
            for view, imputation in report.imputed.items():
                yield IMPUTED_ROWS.add(imputation.rows, view)
        yield _fill(self.waiting, self.size)

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        behind = max(0, status.behind - 1) if self.replayed else 0
        return replace(status, chunk=OpenChunk(self.waiting, self.size), behind=behind)


@dataclass(frozen=True, slots=True)
class ChunkCommitted(PartitionEvent):
    """A chunk's ranking was published, and its state committed in the same transaction."""

    ranking: Ranking
    overlap: Mapping[str, float]
    """By view: the share of the leading features that led the previous ranking as well."""
    missing: Mapping[str, float]
    """By view: the share of the chunk's records without it."""
    imputed: Mapping[str, Imputation]
    """By view: how many of those were imputed, and with what weight."""
    start: int
    """With `next_offset`, the input offsets of the chunk, half-open."""
    next_offset: int
    dead_letters: Mapping[str, int]
    """By reason."""
    snapshot_bytes: int
    """0 if no snapshot was due."""
    seconds: float | None
    """Duration of the transaction, with the last of its chunks."""
    ranking_seconds: float
    """Time to rank, before the transaction."""

    def log(self) -> LogLine:
        fields: dict[str, Any] = {"chunk": self.ranking.chunk, "offset": self.next_offset}
        if self.seconds is not None:
            fields["seconds"] = self.seconds
        if self.snapshot_bytes:
            fields["snapshot_bytes"] = self.snapshot_bytes
        if self.dead_letters:
            fields["dead_letters"] = dict(self.dead_letters)
        level = logging.WARNING if self.dead_letters else logging.INFO
        return self.line(level, "chunk committed", **fields)

    def samples(self, now: float) -> Iterable[Sample]:
        yield CHUNKS.add(1, "published")
        yield RANKING_SECONDS.observe(self.ranking_seconds)
        if self.seconds is not None:
            yield TRANSACTION_SECONDS.observe(self.seconds)
        yield LAST_COMMIT.set(now)
        for view, overlap in self.overlap.items():
            yield TOP_OVERLAP.set(overlap, view)
        for reason, count in self.dead_letters.items():
            yield DEAD_LETTERS.add(count, reason)
        if self.snapshot_bytes:
            yield SNAPSHOT_BYTES.set(self.snapshot_bytes)

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        chunk = self.ranking.chunk
        views = shown_views(self.ranking, self.overlap, self.missing, self.imputed, context.views)
        published = PublishedRanking.of(self.ranking, chunk, context.now, views)
        snapshot = status.snapshot
        if self.snapshot_bytes:
            snapshot = SnapshotInfo(chunk, self.snapshot_bytes)
        return replace(
            status,
            error=None,
            sequence=chunk,
            published=published,
            offsets=(self.start, self.next_offset),
            points=append_point(status.points, HistoryPoint.of(published)),
            letters=self._letters(status.letters, context.now),
            snapshot=snapshot,
        )

    def _letters(
        self, before: Mapping[str, DeadLetterCount], now: float
    ) -> Mapping[str, DeadLetterCount]:
        offsets = (self.start, self.next_offset)
        added = {
            reason: before.get(reason, DeadLetterCount()).add(count, now, offsets)
            for reason, count in self.dead_letters.items()
        }
        return {**before, **added}


@dataclass(frozen=True, slots=True)
class SnapshotCommitted(PartitionEvent):
    """An unscheduled snapshot was committed, before the partition is released."""

    chunk: int
    snapshot_bytes: int

    def log(self) -> LogLine:
        return self.line(
            logging.INFO, "snapshot committed", chunk=self.chunk, snapshot_bytes=self.snapshot_bytes
        )

    def samples(self, now: float) -> Iterable[Sample]:
        return (SNAPSHOT_BYTES.set(self.snapshot_bytes),)

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        return replace(status, snapshot=SnapshotInfo(self.chunk, self.snapshot_bytes))


@dataclass(frozen=True, slots=True)
class TransactionFailed(PartitionEvent):
    """An attempt of a transaction failed; it is repeated, except for an unscheduled snapshot."""

    outcome: Literal["retried", "aborted", "given_up"]
    error: str

    def log(self) -> LogLine:
        text = f"transaction {self.outcome.replace('_', ' ')}"
        return self.line(logging.WARNING, text, error=self.error)

    def samples(self, now: float) -> Iterable[Sample]:
        return (TRANSACTION_FAILURES.add(1, self.outcome),)

    def update(self, status: PartitionStatus, context: StatusContext) -> PartitionStatus:
        # Nothing waits for a snapshot that was given up.
        return status if self.outcome == "given_up" else replace(status, error=self.error)


def _fill(waiting: int, size: int) -> Sample:
    """The fill of the open chunk; more records than one chunk needs may wait."""
    return CHUNK_FILL.set(min(1.0, waiting / size))
