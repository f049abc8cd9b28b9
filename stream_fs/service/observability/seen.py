"""What was seen of a partition, or of the merge. Never modified: every event gives a new one.

So a web thread may read it at leisure while the loop goes on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from stream_fs.pipeline import events
from stream_fs.selector import Ranking, ViewRanking
from stream_fs.selector.imputation import Imputation
from stream_fs.service.configuration import Configuration
from stream_fs.service.observability.status_document import Feature, OpenChunk, SnapshotInfo
from stream_fs.wire.rankings.message import leading_count, published_counts


@dataclass(frozen=True, slots=True)
class SlidingCounter:
    """Counts in slots of `width` seconds, of which the last `slots` are kept. Never modified."""

    width: float
    slots: int
    counts: tuple[tuple[int, int], ...] = ()
    """Number of the slot and count, in the order of time."""

    def add(self, now: float, count: int) -> SlidingCounter:
        """With so many more, now."""
        slot = int(now // self.width)
        kept = [(at, number) for at, number in self.counts if slot - self.slots < at <= slot]
        if kept and kept[-1][0] == slot:
            count += kept.pop()[1]
        return SlidingCounter(self.width, self.slots, (*kept, (slot, count)))

    def recent(self, now: float) -> int:
        """How many in the last `slots` slots, the one that has begun included."""
        slot = int(now // self.width)
        return sum(count for at, count in self.counts if slot - self.slots < at <= slot)


MOST_POINTS: Final = 240
"""However many rankings there were."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Point:
    """One ranking: for each view its weight, the share that lacked it, and the overlap."""

    sequence: int
    time: int
    weight: tuple[float, ...]
    missing: tuple[float | None, ...]
    overlap: tuple[float | None, ...]


def appended(points: tuple[T, ...], point: T) -> tuple[T, ...]:
    """With one more; where there would be too many, every second of the older half goes.

    So the whole life stays in view, and the newer half of it in full.
    """
    if len(points) >= MOST_POINTS:
        half = MOST_POINTS // 2
        points = (*points[:half:2], *points[half:])
    return (*points, point)


def spread(points: Sequence[T], most: int) -> Sequence[T]:
    """At most so many of them, evenly chosen, the first and the last among them."""
    if len(points) <= most:
        return points
    step = (len(points) - 1) / (most - 1)
    return [points[round(index * step)] for index in range(most)]


SHOWN: Final = 10
"""Features of each view; fewer where fewer are published."""
MOST_SCORES: Final = 4096
"""A view with more features has no heat map."""


@dataclass(frozen=True, slots=True)
class Declared:
    """A view as the configuration has it; so many of its features are published."""

    dimension: int
    shape: tuple[int, ...] | None
    published: int

    @property
    def top(self) -> int:
        """How many features the overlap is about."""
        return leading_count(self.published, self.dimension)

    @property
    def shown(self) -> int:
        """How many features are shown."""
        return min(SHOWN, self.published)


@dataclass(frozen=True, slots=True, eq=False)
class RankedView:
    """One view of the newest ranking."""

    name: str
    weight: float
    missing: float | None
    imputed: Imputation | None
    overlap: float | None
    features: tuple[Feature, ...]
    scores: NDArray[np.float32] | None


RankedViews: TypeAlias = tuple[RankedView, ...]


def declared(configuration: Configuration) -> dict[str, Declared]:
    """The views by name."""
    settings = configuration.stream_settings()
    counts = published_counts(settings.params, settings.output_top)
    return {
        view.name: Declared(view.dimension, view.shape, counts[view.name])
        for view in configuration.views
    }


def ranked_views(
    event: events.ChunkCommitted | events.MergedCommitted,
    missing: Mapping[str, float],
    imputed: Mapping[str, Imputation],
    views: Mapping[str, Declared],
) -> RankedViews:
    """What is shown of a published ranking; `missing` and `imputed` are those of its chunk.

    Both are empty for a merged ranking, which has no chunk.
    """
    return tuple(
        RankedView(
            name=view.name,
            weight=view.alpha,
            missing=missing.get(view.name),
            imputed=imputed.get(view.name),
            overlap=event.overlap.get(view.name),
            features=_features(view, views[view.name].shown),
            scores=_scores(view, views[view.name]),
        )
        for view in event.ranking.views
    )


def _features(view: ViewRanking, count: int) -> tuple[Feature, ...]:
    first = view.order[:count]
    return tuple(
        Feature(index, None if view.names is None else view.names[index], relevance)
        for index, relevance in zip(first.tolist(), view.scores[first].tolist(), strict=True)
    )


def _scores(view: ViewRanking, declared: Declared) -> NDArray[np.float32] | None:
    if declared.shape is None or declared.dimension > MOST_SCORES:
        return None
    return view.scores.astype(np.float32)


RATE_SECONDS: Final = 60
"""What the rate is taken over."""
RECENT_MINUTES: Final = 60
"""Dead letters so old are recent."""

_RECORDS: Final = SlidingCounter(width=1.0, slots=RATE_SECONDS)
_LETTERS: Final = SlidingCounter(width=60.0, slots=RECENT_MINUTES)


@dataclass(frozen=True, slots=True)
class Letters:
    """Dead letters of one reason; the last ones came with the chunk of `offsets`."""

    total: int
    recent: SlidingCounter
    time: float
    offsets: tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Published:
    """The newest ranking that this process has published; `records` are those of the model."""

    time: float
    sequence: int
    records: int
    preset: str
    score: str
    model: str
    views: RankedViews


@dataclass(frozen=True, slots=True, eq=False)
class PartitionStatus:
    """One partition, from the moment that it became ours."""

    since: float
    phase: events.Phase = "taking_over"
    trouble: str | None = None
    """What keeps it from going on; it tries again."""
    fenced: bool = False
    sequence: int = 0
    behind: int = 0
    good: int = 0
    bad: Mapping[str, int] = field(default_factory=dict)
    recent: SlidingCounter = _RECORDS
    lag: int | None = None
    chunk: OpenChunk | None = None
    """Of the chunk that is folded in, and perhaps not published yet."""
    published: Published | None = None
    offsets: tuple[int, int] | None = None
    """Of the published chunk."""
    snapshot: SnapshotInfo | None = None
    points: tuple[Point, ...] = ()
    letters: Mapping[str, Letters] = field(default_factory=dict)

    def rate(self, now: float) -> float:
        """Records a second over the last minute, or since it is ours."""
        seconds = min(float(RATE_SECONDS), max(1.0, now - self.since))
        return self.recent.recent(now) / seconds


@dataclass(frozen=True, slots=True, eq=False)
class SeenMerge:
    """The newest merged ranking and those before it, from the moment that the merge was ours."""

    published: Published
    points: tuple[Point, ...]


def phase_changed(seen: PartitionStatus, event: events.PhaseChanged) -> PartitionStatus:
    """Where in its life it is."""
    if event.phase != "taking_over":
        trouble = None if seen.fenced else seen.trouble
        return replace(seen, phase=event.phase, fenced=False, trouble=trouble)
    # A new task knows nothing of the one before. The ranking is out, whoever goes on.
    return replace(seen, phase="taking_over", chunk=None, behind=0)


def read(seen: PartitionStatus, event: events.RecordsRead, now: float) -> PartitionStatus:
    """Records."""
    bad = sum(event.bad.values())
    return replace(
        seen,
        good=seen.good + event.good,
        bad=Counter(seen.bad) + Counter(event.bad) if bad else seen.bad,
        recent=seen.recent.add(now, event.good + bad),
        chunk=OpenChunk(event.waiting, event.size),
    )


def updated(seen: PartitionStatus, event: events.ChunkUpdated) -> PartitionStatus:
    """A folded chunk, whose records wait no more."""
    chunk = seen.chunk
    if chunk is not None:
        # The first chunk is larger than those that follow.
        chunk = OpenChunk(max(0, chunk.waiting - event.report.rows), event.size)
    behind = max(0, seen.behind - 1) if event.replayed else 0
    return replace(seen, chunk=chunk, behind=behind)


def committed(
    seen: PartitionStatus, event: events.ChunkCommitted, now: float, views: RankedViews
) -> PartitionStatus:
    """A published chunk; `views` is what is shown of its ranking."""
    ranking, offsets = event.ranking, (event.start, event.next_offset)
    letters = dict(seen.letters)
    for reason, count in event.letters.items():
        before = letters.get(reason)
        letters[reason] = Letters(
            total=count + (before.total if before else 0),
            recent=(before.recent if before else _LETTERS).add(now, count),
            time=now,
            offsets=offsets,
        )
    snapshot = seen.snapshot
    if event.snapshot_bytes:
        snapshot = SnapshotInfo(ranking.chunk, event.snapshot_bytes)
    return replace(
        seen,
        trouble=None,
        sequence=ranking.chunk,
        published=_published(ranking, ranking.chunk, now, views),
        offsets=offsets,
        points=appended(seen.points, _point(ranking.chunk, now, views)),
        letters=letters,
        snapshot=snapshot,
    )


def merged(
    seen: SeenMerge | None, event: events.MergedCommitted, now: float, views: RankedViews
) -> SeenMerge:
    """A published merged ranking."""
    points = () if seen is None else seen.points
    return SeenMerge(
        _published(event.ranking, event.sequence, now, views),
        appended(points, _point(event.sequence, now, views)),
    )


def _published(ranking: Ranking, sequence: int, now: float, views: RankedViews) -> Published:
    return Published(
        time=now,
        sequence=sequence,
        records=ranking.total,
        preset=ranking.preset,
        score=ranking.score,
        model=ranking.model,
        views=views,
    )


def _point(sequence: int, now: float, views: RankedViews) -> Point:
    return Point(
        sequence=sequence,
        time=milliseconds(now),
        weight=tuple(round(view.weight, 4) for view in views),
        missing=tuple(_rounded(view.missing) for view in views),
        overlap=tuple(_rounded(view.overlap) for view in views),
    )


def restored(seen: PartitionStatus, event: events.Restored) -> PartitionStatus:
    """A model that is back, or a new one."""
    return replace(
        seen,
        trouble=None,
        sequence=event.chunk + event.behind,
        behind=event.behind,
        snapshot=SnapshotInfo(event.chunk, None) if event.chunk else None,
    )


def milliseconds(seconds: float) -> int:
    """A time as the document has it."""
    return round(seconds * 1000)


def _rounded(share: float | None) -> float | None:
    return None if share is None else round(share, 4)
