"""From what was seen of the partitions to the parts of the document, bounded in size."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib.metadata import version
from typing import Final, TypeAlias, assert_never

import numpy as np
from numpy.typing import NDArray

from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Partition
from stream_fs.service.configuration import Configuration
from stream_fs.service.configuration.secrets import redacted
from stream_fs.service.observability import seen as seeing
from stream_fs.service.observability.seen import (
    MOST_POINTS,
    Declared,
    Letters,
    PartitionStatus,
    Point,
    Published,
    RankedView,
    SeenMerge,
    declared,
    milliseconds,
    ranked_views,
    spread,
)
from stream_fs.service.observability.status_document import (
    SCHEMA,
    Commit,
    DeadLetters,
    Health,
    Offsets,
    PartitionEntry,
    RankingHistory,
    RankingStatus,
    Records,
    SnapshotInfo,
    State,
    Status,
    ViewHistory,
    ViewStatus,
)

VALUES_TOGETHER: Final = 30_000
"""Of all histories; where there are many, each has fewer points."""
LEAST_POINTS: Final = 20
SCORES_TOGETHER: Final = 32_768
"""Of all heat maps; the last ones are left out where there would be more."""

Known: TypeAlias = Sequence[tuple[Partition, PartitionStatus]]


def partition_status(
    partition: Partition, seen: PartitionStatus, now: float, reason: str | None
) -> PartitionEntry:
    """One partition; `reason` is why it waits, if it does."""
    published = seen.published
    commit = None
    if published is not None and seen.offsets is not None:
        age = round(max(0.0, now - published.time), 3)
        commit = Commit(milliseconds(published.time), age, _offsets(seen.offsets))
    return PartitionEntry(
        topic=partition.topic,
        partition=partition.number,
        state=_state(seen, waiting=reason is not None),
        reason=reason,
        sequence=seen.sequence,
        behind=seen.behind,
        records=Records(seen.good, dict(seen.bad), round(seen.rate(now), 3)),
        chunk=seen.chunk,
        lag=seen.lag,
        commit=commit,
        snapshot=seen.snapshot,
    )


def _state(seen: PartitionStatus, *, waiting: bool) -> State:
    if seen.fenced:
        return "fenced"
    # A task goes to `publishing` only where a transaction does not come through at once.
    if waiting or seen.phase == "publishing":
        return "waiting"
    return seen.phase


def rankings(
    merge: SeenMerge | None, known: Known, views: Mapping[str, Declared]
) -> list[RankingStatus]:
    """The newest merged ranking, if the merge is ours, and that of every partition that has one."""
    published: list[tuple[Partition | None, Published, Sequence[Point]]] = [
        (at, seen.published, seen.points) for at, seen in known if seen.published is not None
    ]
    if merge is not None:
        published.insert(0, (None, merge.published, merge.points))
    # Three histories for each view.
    series = max(1, 3 * len(views) * len(published))
    points = min(MOST_POINTS, max(LEAST_POINTS, VALUES_TOGETHER // series))
    room = _Room(SCORES_TOGETHER)
    return [_ranking(at, one, spread(past, points), views, room) for at, one, past in published]


class _Room:
    """For so many scores."""

    def __init__(self, scores: int) -> None:
        self._left = scores

    def fitting(self, scores: NDArray[np.float32] | None) -> NDArray[np.float32] | None:
        """The scores, if there is room for them."""
        if scores is None or len(scores) > self._left:
            return None
        self._left -= len(scores)
        return scores


def _ranking(
    partition: Partition | None,
    published: Published,
    points: Sequence[Point],
    views: Mapping[str, Declared],
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
    view: RankedView, declared: Declared, index: int, points: Sequence[Point], room: _Room
) -> ViewStatus:
    return ViewStatus(
        name=view.name,
        dimension=declared.dimension,
        shape=declared.shape,
        weight=view.weight,
        missing=view.missing,
        imputed=view.imputed,
        top=declared.top,
        overlap=view.overlap,
        features=view.features,
        scores=room.fitting(view.scores),
        history=ViewHistory(
            weight=[point.weight[index] for point in points],
            missing=[point.missing[index] for point in points],
            overlap=[point.overlap[index] for point in points],
        ),
    )


def dead_letters(known: Known, now: float) -> list[DeadLetters]:
    """By reason, the most recent first."""
    found: dict[str, list[tuple[Partition, Letters]]] = {}
    for partition, seen in known:
        for reason, letters in seen.letters.items():
            found.setdefault(reason, []).append((partition, letters))
    told = [_of_reason(reason, places, now) for reason, places in found.items()]
    return sorted(told, key=lambda letters: (-letters.time, letters.reason))


def _of_reason(reason: str, places: Sequence[tuple[Partition, Letters]], now: float) -> DeadLetters:
    partition, last = max(places, key=lambda place: place[1].time)
    return DeadLetters(
        reason=reason,
        total=sum(letters.total for _, letters in places),
        last_hour=sum(letters.recent.recent(now) for _, letters in places),
        time=milliseconds(last.time),
        topic=partition.topic,
        partition=partition.number,
        offsets=_offsets(last.offsets),
    )


def _offsets(pair: tuple[int, int]) -> Offsets:
    return {"from": pair[0], "next": pair[1]}


_VERSION: Final = version("stream-fs")


class StatusObserver:
    """An observer of the pipeline; `clock` gives seconds since 1970."""

    def __init__(self, configuration: Configuration, clock: Callable[[], float]) -> None:
        self._stream = configuration.stream.name
        self._views = declared(configuration)
        self._secrets = configuration.secrets()
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self._partitions: dict[Partition, PartitionStatus] = {}
        self._merge: SeenMerge | None = None
        self._counts: dict[str, int] = {}
        """By input topic, the partitions of the stream; empty where they are not known."""

    def stream_partitions(self, counts: Mapping[str, int]) -> None:
        """Set the number of partitions of every input topic, those of other processes included."""
        with self._lock:
            self._counts = dict(counts)

    def __call__(self, event: events.Event) -> None:
        """Take note of an event."""
        match event:
            case events.MergedCommitted():
                views = ranked_views(event, {}, {}, self._views)
                self._merge = seeing.merged(self._merge, event, self._clock(), views)
            case events.MergeReleased():
                self._merge = None
            case events.MergeAcquired() | events.SourceSkipped() | events.MergeFailed():
                pass  # what is ours goes on
            case _:
                self._of_task(event)

    def _of_task(self, event: events.TaskEvent) -> None:
        before = self._partitions.get(event.partition)
        if isinstance(event, events.PartitionReleased):
            with self._lock:
                self._partitions.pop(event.partition, None)
            return
        after = self._after(before or PartitionStatus(since=self._clock()), event)
        topic, number = event.partition.topic, event.partition.number
        with self._lock:
            self._partitions[event.partition] = after
            if topic in self._counts:  # partitions may be added while the process runs
                self._counts[topic] = max(self._counts[topic], number + 1)

    def lag(self, partition: Partition, records: int) -> None:
        """Set the lag of an input partition, unless another member holds it by now."""
        seen = self._partitions.get(partition)
        if seen is not None:
            with self._lock:
                self._partitions[partition] = replace(seen, lag=records)

    def status(self, health: Health, connection_error: str | None) -> Status:
        """All that is known; `connection_error` says why there is no connection to the broker."""
        with self._lock:
            partitions, merge = sorted(self._partitions.items()), self._merge
            total = sum(self._counts.values()) or None
        now = self._clock()
        return Status(
            schema=SCHEMA,
            version=_VERSION,
            stream=self._stream,
            time=milliseconds(now),
            uptime_seconds=round(max(0.0, now - self._began), 3),
            health=replace(health, reason=self._safe(health.reason)),
            partitions=[
                partition_status(partition, seen, now, self._safe(connection_error or seen.trouble))
                for partition, seen in partitions
            ],
            rankings=rankings(merge, partitions, self._views),
            dead_letters=dead_letters(partitions, now),
            stream_partitions=total,
        )

    def _after(self, seen: PartitionStatus, event: events.TaskEvent) -> PartitionStatus:
        match event:
            case events.PhaseChanged():
                return seeing.phase_changed(seen, event)
            case events.RecordsRead():
                return seeing.read(seen, event, self._clock())
            case events.ChunkUpdated():
                return seeing.updated(seen, event)
            case events.ChunkCommitted():
                views = ranked_views(event, event.missing, event.imputed, self._views)
                return seeing.committed(seen, event, self._clock(), views)
            case events.SnapshotCommitted():
                return replace(seen, snapshot=SnapshotInfo(event.chunk, event.snapshot_bytes))
            case events.TransactionFailed():
                # A snapshot that is given up keeps nothing waiting.
                trouble = seen.trouble if event.outcome == "given_up" else event.error
                return replace(seen, trouble=trouble)
            case events.Fenced():
                return replace(seen, fenced=not event.outcome_unknown, trouble=event.error)
            case events.Restored():
                return seeing.restored(seen, event)
            case events.RestoreFailed():
                return replace(seen, trouble=event.error)
            case events.PartitionReleased() | events.GroupOffsetDiffers() | events.ReplayDiverged():
                return seen
            case _:
                assert_never(event)

    def _safe(self, reason: str | None) -> str | None:
        return None if reason is None else redacted(reason, self._secrets)
