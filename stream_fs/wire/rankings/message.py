"""Rankings as messages: the fields that subscribers receive.

A `RankingMessage` is a pure function of the model and its records; it contains no wall-clock time.
`codec` converts it to bytes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Final, Literal, NamedTuple, TypeAlias

import numpy as np

from stream_fs.errors import InvalidMessage, InvalidParameter
from stream_fs.selector import Params, Ranking, Report, ViewRanking
from stream_fs.selector.arrays import Floats
from stream_fs.selector.imputation import Imputation
from stream_fs.selector.parameters import is_whole
from stream_fs.selector.ranking import split_budget

Scope = Literal["partition", "merged"]
Top: TypeAlias = int | float | None
"""Number of published features per view, or their share of all features; None for all."""
Chosen: TypeAlias = Mapping[str, Sequence[int]]
"""By view, the published features of a ranking."""
Leading: TypeAlias = Mapping[str, frozenset[int]]
"""By view, the features whose overlap measures the stability of rankings."""
MOST_LEADING: Final = 10
"""Leading features of a view, where more than half of the view is published."""


class Feature(NamedTuple):
    """One entry of a ranking; a tuple, because there are many."""

    index: int  # type: ignore[assignment]  # hides the method of tuples
    relevance: float
    name: str | None = None


_INDEX: Final = itemgetter(0)
"""Index of a `Feature`."""


@dataclass(frozen=True, slots=True)
class RankedView:
    """A view, its weight α, and its features, best first."""

    name: str
    weight: float
    features: tuple[Feature, ...]


@dataclass(frozen=True, slots=True)
class SelectionChange:
    """Features of a view that entered and left since the previous ranking; share that stayed."""

    entered: tuple[int, ...]
    left: tuple[int, ...]
    overlap: float


@dataclass(frozen=True, slots=True)
class Fit:
    """Convergence on the chunk; `orthogonality` is the largest ‖UᵀU − I‖ of its views."""

    iterations: int
    converged: bool
    objective: float
    orthogonality: float


@dataclass(frozen=True, slots=True)
class RecordCounts:
    """Records in the chunk and in total, dead letters, and missing records of the chunk by view.

    Dead letters are counted from the end of the previous chunk. A merged ranking has no chunk: its
    dead letters are those of all its sources since their start. `imputed` has every view; it is
    None in a merged ranking, and in one published before the field was added.
    """

    chunk: int | None
    total: int
    dead_letters: int
    missing: Mapping[str, int]
    imputed: Mapping[str, Imputation] | None = None


@dataclass(frozen=True, slots=True)
class RankingSource:
    """A partition ranking that went into a merged one."""

    topic: str
    partition: int
    sequence: int


@dataclass(frozen=True, slots=True)
class RankingMessage:
    """One published ranking.

    `offsets` are [from, next); `as_of` is the largest record timestamp, in milliseconds;
    `selection` is None in the first ranking. A merged ranking has `sources` in place of topic,
    partition, offsets and fit.
    """

    stream: str
    topic: str | None
    partition: int | None
    preset: str
    score: str
    model: str
    sequence: int
    offsets: tuple[int, int] | None
    as_of: int
    records: RecordCounts
    views: tuple[RankedView, ...]
    selection: Mapping[str, SelectionChange] | None
    fit: Fit | None
    sources: tuple[RankingSource, ...] = ()

    @property
    def scope(self) -> Scope:
        """Whether it ranks one partition or the whole stream."""
        return "merged" if self.topic is None else "partition"

    @property
    def key(self) -> str:
        """The message key: compaction keeps the newest ranking per key."""
        if self.topic is None:
            return self.stream
        return f"{self.stream}/{self.topic}/{self.partition}"

    @property
    def chosen(self) -> dict[str, tuple[int, ...]]:
        """The published features, with which the next ranking is compared."""
        return {view.name: tuple(map(_INDEX, view.features)) for view in self.views}


def ranking_message(
    ranking: Ranking,
    report: Report,
    *,
    stream: str,
    topic: str,
    partition: int,
    offsets: tuple[int, int],
    as_of: int,
    dead_letters: int,
    counts: Mapping[str, int],
    previous: Chosen | None,
) -> RankingMessage:
    """The ranking after a chunk of one partition.

    `counts` is the number of published features by view (`published_counts`), `previous` the
    features of the previous ranking; None for the first. Raises `InvalidMessage` for a number that
    is not finite.
    """
    fit = Fit(
        report.iterations,
        report.converged,
        report.objective[-1],
        max(report.orthogonality.values()),
    )
    _check_finite("fit", [fit.objective, fit.orthogonality])
    views = _ranked(ranking, counts)
    missing = {name: round(share * report.rows) for name, share in report.missing.items()}
    _check_finite("imputed", [one.weight for one in report.imputed.values()])
    return RankingMessage(
        stream=stream,
        topic=topic,
        partition=partition,
        preset=ranking.preset,
        score=ranking.score,
        model=ranking.model,
        sequence=ranking.chunk,
        offsets=offsets,
        as_of=as_of,
        records=RecordCounts(report.rows, ranking.total, dead_letters, missing, report.imputed),
        views=views,
        selection=_selection(views, previous),
        fit=fit,
    )


def merged_message(
    ranking: Ranking,
    *,
    stream: str,
    sequence: int,
    sources: Sequence[RankingSource],
    as_of: int,
    dead_letters: int,
    counts: Mapping[str, int],
    previous: Chosen | None,
) -> RankingMessage:
    """The ranking of a whole stream, from the partition models in `sources`.

    `as_of` is the largest of theirs, `dead_letters` the sum of theirs.
    """
    views = _ranked(ranking, counts)
    return RankingMessage(
        stream=stream,
        topic=None,
        partition=None,
        preset=ranking.preset,
        score=ranking.score,
        model=ranking.model,
        sequence=sequence,
        offsets=None,
        as_of=as_of,
        records=RecordCounts(None, ranking.total, dead_letters, {}),
        views=views,
        selection=_selection(views, previous),
        fit=None,
        sources=tuple(sources),
    )


def published_counts(params: Params, top: Top) -> dict[str, int]:
    """By view, the number of features that `top` publishes.

    A share (a float in (0, 1]) is divided between the views by the budget rule; a whole number
    counts for every view, all of a smaller one; None is all.
    """
    dimensions = [view.dimension for view in params.views]
    if top is None:
        counts = dimensions
    elif isinstance(top, float):
        counts = split_budget(dimensions, top, params.budget)
    elif is_whole(top) and top >= 1:
        counts = [min(top, dimension) for dimension in dimensions]
    else:
        raise InvalidParameter(
            f"top must be a share in (0, 1], a whole number of at least 1, or all, got {top!r}"
        )
    return {view.name: count for view, count in zip(params.views, counts, strict=True)}


def leading_count(published: int, dimension: int) -> int:
    """Number of leading features among the published ones of a view.

    All of them, up to half of the view. Of more, some would be published in any ranking, and their
    overlap would mean little: then it is the first ten, at most half of the view.
    """
    half = max(1, dimension // 2)
    return published if published <= half else min(MOST_LEADING, half)


def leading(chosen: Chosen, params: Params, *, ordered: bool = True) -> dict[str, frozenset[int]]:
    """The leading features; `chosen` lists those of a view in the order of the ranking.

    Where they are not `ordered`, the result has only views that publish no other features.
    """
    features_by_view = {}
    for view in params.views:
        features = chosen[view.name]
        count = leading_count(len(features), view.dimension)
        if ordered or count == len(features):
            features_by_view[view.name] = frozenset(features[:count])
    return features_by_view


def leading_overlap(now: Leading, before: Leading | None) -> dict[str, float]:
    """By view, the share of the leading features that were leading in the previous ranking.

    The metric, its alert and the status page show this. `SelectionChange.overlap` in the message
    compares all published features.
    """
    before = before or {}
    return {
        name: len(features & before[name]) / len(features)
        for name, features in now.items()
        if name in before
    }


def _ranked(ranking: Ranking, counts: Mapping[str, int]) -> tuple[RankedView, ...]:
    return tuple(_ranked_view(view, counts[view.name]) for view in ranking.views)


def _ranked_view(view: ViewRanking, count: int) -> RankedView:
    order = view.order[:count]
    relevance = view.scores[order]
    _check_finite(f"view {view.name!r}", [view.alpha])
    _check_finite(f"view {view.name!r}", relevance)
    indices = order.tolist()
    columns = [indices, relevance.tolist()]
    if view.names is not None:
        columns.append([view.names[index] for index in indices])
    return RankedView(view.name, view.alpha, tuple(map(Feature, *columns)))


def _selection(
    views: Sequence[RankedView], previous: Chosen | None
) -> dict[str, SelectionChange] | None:
    """The change of the published features by view; None in the first ranking."""
    if previous is None:
        return None
    changes = {}
    for view in views:
        before, now = set(previous[view.name]), set(map(_INDEX, view.features))
        changes[view.name] = SelectionChange(
            tuple(sorted(now - before)), tuple(sorted(before - now)), len(now & before) / len(now)
        )
    return changes


def _check_finite(part: str, numbers: Sequence[float] | Floats) -> None:
    if not np.isfinite(numbers).all():
        raise InvalidMessage(
            f"{part}: the numbers of a ranking must be finite, got {list(numbers)}"
        )


class Continuity:
    """Checks that the rankings of every key follow each other, from any first one on."""

    def __init__(self) -> None:
        self._last: dict[str, RankingMessage] = {}

    def follow(self, ranking: RankingMessage) -> str | None:
        """What is wrong between the previous ranking and this one; None if it follows directly."""
        last = self._last.get(ranking.key)
        self._last[ranking.key] = ranking
        return None if last is None else _discontinuity(last, ranking)


def _discontinuity(last: RankingMessage, now: RankingMessage) -> str | None:
    missing = now.sequence - last.sequence - 1
    if missing > 0:
        return (
            f"{now.key}: {missing} rankings between {last.sequence} and {now.sequence} are missing"
        )
    if missing < 0 and now.sequence == 1:
        return f"{now.key}: the sequence restarts after {last.sequence}"
    if missing < 0:
        return f"{now.key}: ranking {now.sequence} comes after {last.sequence}"
    if last.offsets is None or now.offsets is None or last.offsets[1] == now.offsets[0]:
        return None
    return (
        f"{now.key}: ranking {now.sequence} begins at offset {now.offsets[0]}, the previous one "
        f"ended at {last.offsets[1]}"
    )
