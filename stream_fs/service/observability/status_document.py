"""What `/api/status` says, as plain data; `schemas/status.v1.json` is its contract.

Times are milliseconds since 1970, like those of rankings; ages and durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypedDict

import numpy as np
import orjson
from numpy.typing import NDArray

from stream_fs.selector.imputation import Imputation
from stream_fs.wire.rankings.message import Scope

SCHEMA: Final = 1

State = Literal["taking_over", "restoring", "replaying", "running", "waiting", "fenced"]
"""`waiting` is for the broker; a `fenced` partition was taken by another process."""


Offsets = TypedDict("Offsets", {"from": int, "next": int})
"""Input offsets, half-open."""


@dataclass(frozen=True, slots=True)
class Records:
    """Records read since the partition is ours, the bad ones by reason; `rate` a second."""

    good: int
    bad: Mapping[str, int]
    rate: float


@dataclass(frozen=True, slots=True)
class OpenChunk:
    """Good records that wait, and how many a chunk needs."""

    waiting: int
    size: int


@dataclass(frozen=True, slots=True)
class Commit:
    """The last published chunk, of those that this process has published."""

    time: int
    age_seconds: float
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """The newest snapshot; its size is not known of one that was only read."""

    sequence: int
    bytes: int | None


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """One input partition of ours.

    `sequence` is the last published ranking's, 0 before the first; `behind` chunks are still to be
    folded in again after a restart.
    """

    topic: str
    partition: int
    state: State
    reason: str | None
    sequence: int
    behind: int
    records: Records
    chunk: OpenChunk | None
    lag: int | None
    commit: Commit | None
    snapshot: SnapshotInfo | None


@dataclass(frozen=True, slots=True)
class Feature:
    """One place of a ranking; `name` where one is declared."""

    index: int
    name: str | None
    relevance: float


@dataclass(frozen=True, slots=True)
class ViewHistory:
    """Values of earlier rankings, as long as the ranking's own history; None is unknown."""

    weight: Sequence[float]
    missing: Sequence[float | None]
    overlap: Sequence[float | None]


@dataclass(frozen=True, slots=True, eq=False)
class ViewStatus:
    """One view in a ranking.

    `missing` is the share of the last chunk's records that lack it; `imputed` how many of them were
    imputed, and with what weight; both are None in a merged ranking. `overlap` is the share of the
    first `top` features that were among the first `top` before. `scores` has every feature's, by
    index, for a view that has a shape and is not too large.
    """

    name: str
    dimension: int
    shape: Sequence[int] | None
    weight: float
    missing: float | None
    imputed: Imputation | None
    top: int
    overlap: float | None
    features: Sequence[Feature]
    scores: NDArray[np.float32] | None
    history: ViewHistory


@dataclass(frozen=True, slots=True)
class RankingHistory:
    """The rankings that the histories of the views are about."""

    sequence: Sequence[int]
    time: Sequence[int]


@dataclass(frozen=True, slots=True)
class RankingStatus:
    """The newest ranking of a partition or, without topic and partition, of the stream."""

    scope: Scope
    topic: str | None
    partition: int | None
    sequence: int
    time: int
    records: int
    preset: str
    score: str
    model: str
    history: RankingHistory
    views: Sequence[ViewStatus]


@dataclass(frozen=True, slots=True)
class DeadLetters:
    """Dead letters of one reason: in all, in the last hour, and where the last ones came from.

    `offsets` are those of the chunk that they were published with.
    """

    reason: str
    total: int
    last_hour: int
    time: int
    topic: str
    partition: int
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class Health:
    """What `/healthz` and `/readyz` say; `reason` where one of them does not say `ok`."""

    alive: bool
    ready: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Status:
    """All of it. A merged ranking comes before those of partitions.

    `partitions` are those of this process, of the `stream_partitions` that the input topics have.
    """

    schema: int
    version: str
    stream: str
    time: int
    uptime_seconds: float
    health: Health
    partitions: Sequence[PartitionEntry]
    rankings: Sequence[RankingStatus]
    dead_letters: Sequence[DeadLetters]
    stream_partitions: int | None


def encode(status: Status) -> bytes:
    """As JSON."""
    return orjson.dumps(status, option=orjson.OPT_SERIALIZE_NUMPY)
