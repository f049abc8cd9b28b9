"""Status of the process as served at `/api/status`; `schemas/status.v1.json` is its contract.

Times are milliseconds since 1970, as in rankings; ages and durations are seconds.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, TypedDict

import numpy as np
import orjson
from numpy.typing import NDArray

from stream_fs.pipeline.events.status import (
    MOST_POINTS,
    DeadLetterCount,
    Feature,
    HistoryPoint,
    MergeStatus,
    OpenChunk,
    PartitionStatus,
    PublishedRanking,
    ShownView,
    SnapshotInfo,
    ViewLayout,
    ViewLayouts,
    milliseconds,
    thin_out,
)
from stream_fs.pipeline.ports import Partition
from stream_fs.selector.imputation import Imputation
from stream_fs.wire.rankings.message import Scope

SCHEMA: Final = 1

State = Literal["taking_over", "restoring", "replaying", "running", "waiting", "fenced"]
"""`waiting`: for the broker; `fenced`: another process acquired the partition."""


Offsets = TypedDict("Offsets", {"from": int, "next": int})
"""Input offsets, half-open."""


@dataclass(frozen=True, slots=True)
class Records:
    """Records read since the partition was acquired, bad ones by reason; `rate` per second."""

    good: int
    bad: Mapping[str, int]
    rate: float


@dataclass(frozen=True, slots=True)
class Commit:
    """The last chunk that this process published."""

    time: int
    age_seconds: float
    offsets: Offsets


@dataclass(frozen=True, slots=True)
class PartitionEntry:
    """One input partition of this process.

    `sequence` is that of the last published ranking, 0 before the first; `behind` chunks are still
    to be replayed.
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
class ViewHistory:
    """Values of earlier rankings, one for each entry of the ranking's history; None is unknown."""

    weight: Sequence[float]
    missing: Sequence[float | None]
    overlap: Sequence[float | None]


@dataclass(frozen=True, slots=True, eq=False)
class ViewStatus:
    """One view in a ranking.

    `missing` is the share of the last chunk's records that lack it; `imputed` how many of them were
    imputed, and with what weight; both are None in a merged ranking. `overlap` is the share of the
    first `top` features that were among the first `top` of the previous ranking. `scores` of every
    feature by index, for a view that has a shape and is not too large.
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
    """The rankings to which the histories of the views refer."""

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
    """Dead letters of one reason: in total, in the last hour, and the origin of the last ones.

    `offsets` are those of the chunk with which they were published.
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
    """The answers of `/healthz` and `/readyz`; `reason` if one of them is not `ok`."""

    alive: bool
    ready: bool
    reason: str | None


@dataclass(frozen=True, slots=True)
class Status:
    """The document. A merged ranking comes before those of partitions.

    `partitions` are those of this process, out of `stream_partitions` of the input topics.
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


# --- from the status of partitions, bounded in size ---

MOST_VALUES: Final = 30_000
"""In all histories together; with many of them, each has fewer points."""
LEAST_POINTS: Final = 20
MOST_SCORES: Final = 32_768
"""In all heat maps together; the last ones are left out."""

Partitions: TypeAlias = Sequence[tuple[Partition, PartitionStatus]]


def partition_entry(
    partition: Partition, status: PartitionStatus, now: float, reason: str | None
) -> PartitionEntry:
    """One partition; `reason` is why it waits, if it does."""
    published = status.published
    commit = None
    if published is not None and status.offsets is not None:
        age = round(max(0.0, now - published.time), 3)
        commit = Commit(milliseconds(published.time), age, _offsets(status.offsets))
    return PartitionEntry(
        topic=partition.topic,
        partition=partition.number,
        state=_state(status, waiting=reason is not None),
        reason=reason,
        sequence=status.sequence,
        behind=status.behind,
        records=Records(status.good, dict(status.bad), round(status.rate(now), 3)),
        chunk=status.chunk,
        lag=status.lag,
        commit=commit,
        snapshot=status.snapshot,
    )


def _state(status: PartitionStatus, *, waiting: bool) -> State:
    if status.fenced:
        return "fenced"
    # A task enters `publishing` only when a transaction has to be repeated.
    if waiting or status.phase == "publishing":
        return "waiting"
    return status.phase


def rankings(
    merge: MergeStatus | None, partitions: Partitions, views: ViewLayouts
) -> list[RankingStatus]:
    """The newest merged ranking, if this process has the merge, and those of its partitions."""
    published: list[tuple[Partition | None, PublishedRanking, Sequence[HistoryPoint]]] = [
        (partition, status.published, status.points)
        for partition, status in partitions
        if status.published is not None
    ]
    if merge is not None:
        published.insert(0, (None, merge.published, merge.points))
    histories = max(1, 3 * len(views) * len(published))  # three of each view
    length = min(MOST_POINTS, max(LEAST_POINTS, MOST_VALUES // histories))
    room = _Room(MOST_SCORES)
    return [
        _ranking(partition, ranking, thin_out(points, length), views, room)
        for partition, ranking, points in published
    ]


class _Room:
    """Room for a number of scores."""

    def __init__(self, scores: int) -> None:
        self._left = scores

    def take(self, scores: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        """The scores if there is room for them, None otherwise."""
        if scores is None or len(scores) > self._left:
            return None
        self._left -= len(scores)
        return scores


def _ranking(
    partition: Partition | None,
    published: PublishedRanking,
    points: Sequence[HistoryPoint],
    views: ViewLayouts,
    room: _Room,
) -> RankingStatus:
    return RankingStatus(
        scope="merged" if partition is None else "partition",
        topic=None if partition is None else partition.topic,
        partition=None if partition is None else partition.number,
        sequence=published.sequence,
        time=milliseconds(published.time),
        records=published.records,
        preset=published.preset,
        score=published.score,
        model=published.model,
        history=RankingHistory(
            sequence=[point.sequence for point in points], time=[point.time for point in points]
        ),
        views=[
            _view(view, views[view.name], index, points, room)
            for index, view in enumerate(published.views)
        ],
    )


def _view(
    view: ShownView, layout: ViewLayout, index: int, points: Sequence[HistoryPoint], room: _Room
) -> ViewStatus:
    return ViewStatus(
        name=view.name,
        dimension=layout.dimension,
        shape=layout.shape,
        weight=view.weight,
        missing=view.missing,
        imputed=view.imputed,
        top=layout.top,
        overlap=view.overlap,
        features=view.features,
        scores=room.take(view.scores),
        history=ViewHistory(
            weight=[point.weight[index] for point in points],
            missing=[point.missing[index] for point in points],
            overlap=[point.overlap[index] for point in points],
        ),
    )


def dead_letters(partitions: Partitions, now: float) -> list[DeadLetters]:
    """Dead letters by reason, the most recent first."""
    counts: dict[str, list[tuple[Partition, DeadLetterCount]]] = {}
    for partition, status in partitions:
        for reason, count in status.letters.items():
            counts.setdefault(reason, []).append((partition, count))
    entries = [_dead_letters(reason, places, now) for reason, places in counts.items()]
    return sorted(entries, key=lambda entry: (-entry.time, entry.reason))


def _dead_letters(
    reason: str, places: Sequence[tuple[Partition, DeadLetterCount]], now: float
) -> DeadLetters:
    partition, last = max(places, key=lambda place: place[1].time)
    return DeadLetters(
        reason=reason,
        total=sum(count.total for _, count in places),
        last_hour=sum(count.recent.recent(now) for _, count in places),
        time=milliseconds(last.time),
        topic=partition.topic,
        partition=partition.number,
        offsets=_offsets(last.offsets),
    )


def _offsets(pair: tuple[int, int]) -> Offsets:
    return {"from": pair[0], "next": pair[1]}


def encode(status: Status) -> bytes:
    """The document as JSON."""
    return orjson.dumps(status, option=orjson.OPT_SERIALIZE_NUMPY)
