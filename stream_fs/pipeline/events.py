"""What happens in tasks and in the merge, told to whoever watches: metrics, logs, the status page.

Events carry facts; what they mean for an operator is decided where they are received.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from stream_fs.checkpoint import MergedPart
from stream_fs.pipeline.ports import Partition
from stream_fs.selector import Ranking, Report
from stream_fs.selector.imputation import Imputation

Phase = Literal["taking_over", "restoring", "replaying", "running", "publishing"]
SkipReason = Literal["incompatible", "damaged", "undecided"]


@dataclass(frozen=True, slots=True)
class PhaseChanged:
    """A task went on to another phase of its life."""

    partition: Partition
    phase: Phase


@dataclass(frozen=True, slots=True)
class RecordsRead:
    """Messages were decoded: how many were good, and the bad ones by reason.

    `position` is the offset behind the last of them; `waiting` good ones are in the open chunk, of
    the `size` that it needs.
    """

    partition: Partition
    good: int
    bad: Mapping[str, int]
    position: int
    waiting: int
    size: int


@dataclass(frozen=True, slots=True)
class ChunkUpdated:
    """A chunk was folded into the model; `replayed` ones were published by an earlier life.

    `size` is the number of good records that the next chunk needs.
    """

    partition: Partition
    report: Report
    seconds: float
    replayed: bool
    size: int


@dataclass(frozen=True, slots=True)
class ChunkCommitted:
    """A chunk's ranking is out, and the state with it."""

    partition: Partition
    ranking: Ranking
    overlap: Mapping[str, float]
    """By view: the share of the leading features that were leading in the ranking before."""
    missing: Mapping[str, float]
    """By view: the share of the chunk's records without it."""
    imputed: Mapping[str, Imputation]
    """By view: how many of those were imputed, and with what weight."""
    start: int
    """With `next_offset`, the input offsets of the chunk, half-open."""
    next_offset: int
    letters: Mapping[str, int]
    """Dead letters by reason."""
    snapshot_bytes: int
    """0 where no snapshot was due."""
    seconds: float | None
    """Of the transaction; told with the last of its chunks."""
    ranking_seconds: float
    """Of the ranking, before it."""


@dataclass(frozen=True, slots=True)
class SnapshotCommitted:
    """A snapshot was written out of turn, before the partition is given up."""

    partition: Partition
    chunk: int
    snapshot_bytes: int


@dataclass(frozen=True, slots=True)
class TransactionFailed:
    """A transaction did not come through.

    It is tried again, but for a snapshot out of turn, which is given up.
    """

    partition: Partition
    outcome: Literal["retried", "aborted", "given_up"]
    error: str


@dataclass(frozen=True, slots=True)
class Fenced:
    """Somebody else has taken the partition over; unless `final`, we take it back after a pause.

    Where it is `outcome_unknown`, there may be no other owner, and it has to be acquired anew.
    """

    partition: Partition
    error: str
    final: bool
    outcome_unknown: bool = False


@dataclass(frozen=True, slots=True)
class PartitionReleased:
    """The partition is not ours any more."""

    partition: Partition


@dataclass(frozen=True, slots=True)
class Restored:
    """The model is back, as of `chunk`, with `behind` chunks to be folded in again."""

    partition: Partition
    chunk: int
    behind: int
    offset: int
    seconds: float
    fallback: str | None
    """Why the newest snapshot could not be used, where the one before it was taken."""
    migrated: bool = False
    """Whether it was a legacy state, whose keys did not name an owner."""


@dataclass(frozen=True, slots=True)
class RestoreFailed:
    """The state could not be read; it is tried again."""

    partition: Partition
    error: str


@dataclass(frozen=True, slots=True)
class GroupOffsetDiffers:
    """The group's offset is not the state's; the state decides."""

    partition: Partition
    group: int
    state: int


@dataclass(frozen=True, slots=True)
class ReplayDiverged:
    """A replayed ranking is not the one that was published (another CPU, BLAS or output)."""

    partition: Partition
    chunk: int


@dataclass(frozen=True, slots=True)
class MergeAcquired:
    """The merge is ours; `sequence` is that of the last merged ranking, 0 where there is none."""

    sequence: int


@dataclass(frozen=True, slots=True)
class MergedCommitted:
    """A merged ranking is out."""

    sequence: int
    ranking: Ranking
    parts: tuple[MergedPart, ...]
    overlap: Mapping[str, float]
    """By view: the share of the leading features that were leading in the ranking before."""
    as_of: int
    partitions: int
    """How many the stream has; those without a full chunk are not in it."""
    seconds: float
    """To merge and rank, which nothing else can be done beside."""


@dataclass(frozen=True, slots=True)
class SourceSkipped:
    """The state of a partition cannot be merged as it is now.

    `incompatible`: other parameters made it. `damaged`: its snapshots are not whole; the model that
    was read before stays in. `undecided`: somebody's open transaction hides it for a while.
    """

    partition: Partition
    reason: SkipReason
    detail: str


@dataclass(frozen=True, slots=True)
class MergeFailed:
    """The merge did not come through.

    It is tried again (`retried`, `aborted`), taken over again (`fenced` by another owner, or
    `undecided`: the outcome of the commit is unknown, or the transaction timed out), or waits until
    there is something else to merge (`refused`).
    """

    outcome: Literal["retried", "aborted", "fenced", "undecided", "refused"]
    error: str


@dataclass(frozen=True, slots=True)
class MergeReleased:
    """The merge is not ours any more."""


TaskEvent: TypeAlias = (
    PhaseChanged
    | RecordsRead
    | ChunkUpdated
    | ChunkCommitted
    | SnapshotCommitted
    | TransactionFailed
    | Fenced
    | PartitionReleased
    | Restored
    | RestoreFailed
    | GroupOffsetDiffers
    | ReplayDiverged
)
MergeEvent: TypeAlias = (
    MergeAcquired | MergedCommitted | SourceSkipped | MergeFailed | MergeReleased
)
Event: TypeAlias = TaskEvent | MergeEvent
Observer: TypeAlias = Callable[[Event], None]
