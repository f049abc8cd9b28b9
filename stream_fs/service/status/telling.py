"""From what was seen of the partitions to the parts of the document, bounded in size."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_fs.pipeline.ports import Partition
from stream_fs.service.status.document import (
    Commit,
    DeadLetters,
    Offsets,
    PartitionStatus,
    RankingHistory,
    RankingStatus,
    Records,
    State,
    ViewHistory,
    ViewStatus,
)
from stream_fs.service.status.history import MOST_POINTS, Point, spread
from stream_fs.service.status.ranked import Declared, RankedView
from stream_fs.service.status.seen import Letters, Published, Seen, SeenMerge, milliseconds

VALUES_TOGETHER: Final = 30_000
"""Of all histories; where there are many, each has fewer points."""
LEAST_POINTS: Final = 20
SCORES_TOGETHER: Final = 32_768
"""Of all heat maps; the last ones are left out where there would be more."""

Known: TypeAlias = Sequence[tuple[Partition, Seen]]


def partition_status(
    partition: Partition, seen: Seen, now: float, reason: str | None
) -> PartitionStatus:
    """One partition; `reason` is why it waits, if it does."""
    published = seen.published
    commit = None
    if published is not None and seen.offsets is not None:
        age = round(max(0.0, now - published.time), 3)
        commit = Commit(milliseconds(published.time), age, _offsets(seen.offsets))
    return PartitionStatus(
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


def _state(seen: Seen, *, waiting: bool) -> State:
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
