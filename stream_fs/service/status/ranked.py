"""What is kept of a ranking: enough to show it, however many features there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_fs.pipeline import events
from stream_fs.selector import ViewRanking
from stream_fs.service.configuration import Configuration
from stream_fs.service.status.document import Feature
from stream_fs.wire.rankings import leading_count, top_counts

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
    overlap: float | None
    features: tuple[Feature, ...]
    scores: NDArray[np.float32] | None


RankedViews: TypeAlias = tuple[RankedView, ...]


def declared(configuration: Configuration) -> dict[str, Declared]:
    """The views by name."""
    settings = configuration.stream_settings()
    counts = top_counts(settings.params, settings.output_top)
    return {
        view.name: Declared(view.dimension, view.shape, counts[view.name])
        for view in configuration.views
    }


def ranked_views(
    event: events.ChunkCommitted | events.MergedCommitted,
    missing: Mapping[str, float],
    views: Mapping[str, Declared],
) -> RankedViews:
    """What is shown of a published ranking; `missing` is its chunk's.

    Of a merged one nothing is missing: that is told of chunks.
    """
    return tuple(
        RankedView(
            name=view.name,
            weight=view.alpha,
            missing=missing.get(view.name),
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
