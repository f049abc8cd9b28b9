"""Status of partitions and of the merge: immutable data, replaced by every event.

A web thread can therefore read it while the loop goes on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, Self, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stream_fs.selector import Ranking, ViewRanking
from stream_fs.selector.imputation import Imputation
from stream_fs.wire.rankings.message import leading_count

Phase = Literal["taking_over", "restoring", "replaying", "running", "publishing"]

RATE_SECONDS: Final = 60
"""Window of the record rate."""
RECENT_MINUTES: Final = 60
"""Window of recent dead letters."""
SHOWN: Final = 10
"""Features shown of each view; fewer if fewer are published."""
MOST_SCORES: Final = 4096
"""A view with more features has no heat map."""
MOST_POINTS: Final = 240
"""Points of a history."""

T = TypeVar("T")


# --- counts and histories ---


@dataclass(frozen=True, slots=True)
class SlidingCounter:
    """Counts in slots of `width` seconds, of which the last `slots` are kept."""

    width: float
    slots: int
    counts: tuple[tuple[int, int], ...] = ()
    """Number of the slot and count, in the order of time."""

    def add(self, now: float, count: int) -> SlidingCounter:
        """The counter with `count` more at `now`."""
        slot = int(now // self.width)
        kept = [(at, number) for at, number in self.counts if slot - self.slots < at <= slot]
        if kept and kept[-1][0] == slot:
            count += kept.pop()[1]
        return SlidingCounter(self.width, self.slots, (*kept, (slot, count)))

    def recent(self, now: float) -> int:
        """The sum of the last `slots` slots, including the one that has begun."""
        slot = int(now // self.width)
        return sum(count for at, count in self.counts if slot - self.slots < at <= slot)


_RECORDS: Final = SlidingCounter(width=1.0, slots=RATE_SECONDS)
_LETTERS: Final = SlidingCounter(width=60.0, slots=RECENT_MINUTES)


@dataclass(frozen=True, slots=True)
class DeadLetterCount:
    """Dead letters of one reason; the last ones belong to the chunk with `offsets`."""

    total: int = 0
    recent: SlidingCounter = _LETTERS
    time: float = 0.0
    offsets: tuple[int, int] = (0, 0)

    def add(self, count: int, now: float, offsets: tuple[int, int]) -> DeadLetterCount:
        """The counts with those of one more chunk."""
        return DeadLetterCount(self.total + count, self.recent.add(now, count), now, offsets)


def append_point(points: tuple[T, ...], point: T) -> tuple[T, ...]:
    """The history with one more point; when it is full, every second of the older half is dropped.

    It therefore goes back to the beginning, and its newer half is complete.
    """
    if len(points) >= MOST_POINTS:
        half = MOST_POINTS // 2
        points = (*points[:half:2], *points[half:])
    return (*points, point)


def thin_out(points: Sequence[T], most: int) -> Sequence[T]:
    """At most `most` points, evenly chosen, including the first and the last."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(index * step)] for index in range(most)]


def milliseconds(seconds: float) -> int:
    """Seconds since 1970 in milliseconds."""
    return round(seconds * 1000)


# --- rankings ---


@dataclass(frozen=True, slots=True)
class Feature:
    """One place of a ranking; `name` if one is declared."""

    index: int
    name: str | None
    relevance: float


@dataclass(frozen=True, slots=True)
class ViewLayout:
    """A view as configured, with the number of its features that are published."""

    dimension: int
    shape: tuple[int, ...] | None
    published: int

    @property
    def top(self) -> int:
        """Number of features that the overlap compares."""
        return leading_count(self.published, self.dimension)

    @property
    def shown(self) -> int:
        """Number of features that are shown."""
        return min(SHOWN, self.published)


ViewLayouts: TypeAlias = Mapping[str, ViewLayout]


@dataclass(frozen=True, slots=True)
class StatusContext:
    """What the status depends on beside events: the time, and the views by name."""

    now: float
    views: ViewLayouts


@dataclass(frozen=True, slots=True, eq=False)
class ShownView:
    """One view of the newest ranking; `missing` and `imputed` are None in a merged one."""

    name: str
    weight: float
    missing: float | None
    imputed: Imputation | None
    overlap: float | None
    features: tuple[Feature, ...]
    scores: NDArray[np.float32] | None


ShownViews: TypeAlias = tuple[ShownView, ...]


def shown_views(
    ranking: Ranking,
    overlap: Mapping[str, float],
    missing: Mapping[str, float],
    imputed: Mapping[str, Imputation],
    views: ViewLayouts,
) -> ShownViews:
    """The views of a published ranking; `missing` and `imputed` are those of its chunk."""
    return tuple(
        ShownView(
            name=view.name,
            weight=view.alpha,
            missing=missing.get(view.name),
            imputed=imputed.get(view.name),
            overlap=overlap.get(view.name),
            features=_features(view, views[view.name].shown),
            scores=_scores(view, views[view.name]),
        )
        for view in ranking.views
    )


def _features(view: ViewRanking, count: int) -> tuple[Feature, ...]:
    first = view.order[:count]
    return tuple(
        Feature(index, None if view.names is None else view.names[index], relevance)
        for index, relevance in zip(first.tolist(), view.scores[first].tolist(), strict=True)
    )


def _scores(view: ViewRanking, layout: ViewLayout) -> NDArray[np.float32] | None:
    if layout.shape is None or layout.dimension > MOST_SCORES:
        return None
    return view.scores.astype(np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class PublishedRanking:
    """The newest ranking that this process published; `records` are those of the model."""

    time: float
    sequence: int
    records: int
    preset: str
    score: str
    model: str
    views: ShownViews

    @classmethod
    def of(cls, ranking: Ranking, sequence: int, time: float, views: ShownViews) -> Self:
        """A ranking, published at `time` with this sequence."""
        return cls(
            time=time,
            sequence=sequence,
            records=ranking.total,
            preset=ranking.preset,
            score=ranking.score,
            model=ranking.model,
            views=views,
        )


@dataclass(frozen=True, slots=True)
class HistoryPoint:
    """One published ranking: for each view its weight, its missing share, and its overlap."""

    sequence: int
    time: int
    weight: tuple[float, ...]
    missing: tuple[float | None, ...]
    overlap: tuple[float | None, ...]

    @classmethod
    def of(cls, published: PublishedRanking) -> Self:
        """The point of a ranking."""
        views = published.views
        return cls(
            sequence=published.sequence,
            time=milliseconds(published.time),
            weight=tuple(round(view.weight, 4) for view in views),
            missing=tuple(_rounded(view.missing) for view in views),
            overlap=tuple(_rounded(view.overlap) for view in views),
        )


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)


# --- partitions and the merge ---


@dataclass(frozen=True, slots=True)
class OpenChunk:
    """Good records that wait, and the number that completes a chunk."""

    waiting: int
    size: int


@dataclass(frozen=True, slots=True)
class SnapshotInfo:
    """The newest snapshot; its size is unknown if it was only read."""

    sequence: int
    bytes: int | None


@dataclass(frozen=True, slots=True, eq=False)
class PartitionStatus:
    """Status of one partition since this process acquired it, at `since`.

    `error` is why it waits; `chunk` is that of the newest update, which may not be published yet;
    `offsets` are those of the published chunk.
    """

    since: float
    phase: Phase = "taking_over"
    error: str | None = None
    fenced: bool = False
    sequence: int = 0
    behind: int = 0
    good: int = 0
    bad: Mapping[str, int] = field(default_factory=dict)
    recent: SlidingCounter = _RECORDS
    lag: int | None = None
    chunk: OpenChunk | None = None
    published: PublishedRanking | None = None
    offsets: tuple[int, int] | None = None
    snapshot: SnapshotInfo | None = None
    points: tuple[HistoryPoint, ...] = ()
    letters: Mapping[str, DeadLetterCount] = field(default_factory=dict)

    def rate(self, now: float) -> float:
        """Records per second over the last minute, or since the partition was acquired."""
        seconds = min(float(RATE_SECONDS), max(1.0, now - self.since))
        return self.recent.recent(now) / seconds


@dataclass(frozen=True, slots=True, eq=False)
class MergeStatus:
    """The newest merged ranking and its history since this process acquired the merge."""

    published: PublishedRanking
    points: tuple[HistoryPoint, ...]
