"""Events of the merge."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import ClassVar, Literal

from stream_fs.checkpoint import MergedPart
from stream_fs.pipeline.events.event import MergeEvent
from stream_fs.pipeline.events.instruments import (
    LAST_MERGE,
    MERGE_FAILURES,
    MERGE_PARTITIONS,
    MERGE_SECONDS,
    MERGE_SKIPS,
    MERGE_SOURCES,
    MERGED_RANKINGS,
    LogLine,
    Sample,
)
from stream_fs.pipeline.events.status import (
    HistoryPoint,
    MergeStatus,
    PublishedRanking,
    StatusContext,
    append_point,
    shown_views,
)
from stream_fs.pipeline.ports import Partition
from stream_fs.selector import Ranking

SkipReason = Literal["incompatible", "damaged", "undecided"]


@dataclass(frozen=True, slots=True)
class MergeAcquired(MergeEvent):
    """This process acquired the merge; `sequence` of the last merged ranking, 0 without one."""

    sequence: int

    def log(self) -> LogLine:
        return LogLine(logging.INFO, "merge acquired", {"sequence": self.sequence})


@dataclass(frozen=True, slots=True)
class MergedCommitted(MergeEvent):
    """A merged ranking was published.

    `overlap` by view: the share of the leading features that led the previous ranking as well.
    `partitions` of the stream; those without a full chunk are not among the `parts`. `seconds` to
    merge and rank, during which the loop does nothing else.
    """

    sequence: int
    ranking: Ranking
    parts: tuple[MergedPart, ...]
    overlap: Mapping[str, float]
    as_of: int
    partitions: int
    seconds: float

    def log(self) -> LogLine:
        fields = {
            "sequence": self.sequence,
            "sources": len(self.parts),
            "partitions": self.partitions,
            "seconds": self.seconds,
        }
        return LogLine(logging.INFO, "merged ranking committed", fields)

    def samples(self, now: float) -> Iterable[Sample]:
        yield MERGED_RANKINGS.add(1)
        yield MERGE_SECONDS.observe(self.seconds)
        yield MERGE_SOURCES.set(len(self.parts))
        yield MERGE_PARTITIONS.set(self.partitions)
        yield LAST_MERGE.set(now)

    def update(self, status: MergeStatus | None, context: StatusContext) -> MergeStatus:
        # A merged ranking has no chunk that rows could be missing from.
        views = shown_views(self.ranking, self.overlap, {}, {}, context.views)
        published = PublishedRanking.of(self.ranking, self.sequence, context.now, views)
        points = () if status is None else status.points
        return MergeStatus(published, append_point(points, HistoryPoint.of(published)))


@dataclass(frozen=True, slots=True)
class SourceSkipped(MergeEvent):
    """The state of a partition cannot be merged as it is now.

    `incompatible`: other parameters made it. `damaged`: its snapshots are damaged; the model that
    was read before stays in. `undecided`: an open transaction hides it for a while.
    """

    partition: Partition
    reason: SkipReason
    detail: str

    def log(self) -> LogLine:
        fields = {
            "topic": self.partition.topic,
            "partition": self.partition.number,
            "reason": self.reason,
            "detail": self.detail,
        }
        return LogLine(logging.WARNING, "partition cannot be merged", fields)

    def samples(self, now: float) -> Iterable[Sample]:
        return (MERGE_SKIPS.add(1, self.reason),)


@dataclass(frozen=True, slots=True)
class MergeFailed(MergeEvent):
    """The merge failed.

    It is attempted again (`retried`, `aborted`), acquired again (`fenced` by another owner, or
    `undecided`: the outcome of the commit is unknown, or the transaction timed out), or waits until
    there is something else to merge (`refused`).
    """

    outcome: Literal["retried", "aborted", "fenced", "undecided", "refused"]
    error: str

    def log(self) -> LogLine:
        return LogLine(logging.WARNING, f"merge {self.outcome}", {"error": self.error})

    def samples(self, now: float) -> Iterable[Sample]:
        return (MERGE_FAILURES.add(1, self.outcome),)


@dataclass(frozen=True, slots=True)
class MergeReleased(MergeEvent):
    """This process released the merge."""

    released: ClassVar[bool] = True

    def log(self) -> LogLine:
        return LogLine(logging.INFO, "merge released", {})
