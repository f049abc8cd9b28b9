"""The summary of the demo: rankings, speed, and the quality of the selected features.

The incomplete images are clustered (spectral clustering of the summed neighbour graphs), once with
all features and once with the selected ones; the labels, which the selector does not see, measure
the clusters.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.demo.dataset import CHUNK, CLUSTERS, MISSING, PASSES, SHARE, DemoStream
from stream_fs.demo.display import TimedRanking, records_per_second
from stream_fs.evaluate.datasets import IncompleteViews, Mask
from stream_fs.evaluate.graphs import view_graphs
from stream_fs.evaluate.judges import agreement, spectral
from stream_fs.evaluate.protocol import remove_views
from stream_fs.selector.ranking import split_budget
from stream_fs.wire import RankingMessage


def describe(stream: DemoStream, passes: int) -> str:
    """The data in words; `passes` is the number of times that the data file is streamed."""
    views = ", ".join(f"{view.name} ({len(view.names)})" for view in stream.views)
    second = ", and all of that again at full speed" if passes > 1 else ""
    return (
        f"{len(stream.labels):,} handwritten digits of scikit-learn, each described by "
        f"{len(stream.views)} views: {views}. {MISSING:.0%} of every view is missing. "
        f"{stream.useless} of the {stream.features} features are useless: noise, constants, heavy "
        f"tails. The digits are streamed {PASSES} times, each time in another order and with other "
        f"views missing{second}: {passes * stream.records:,} records."
    )


def summary(
    stream: DemoStream, rankings: Sequence[TimedRanking], burst: Sequence[TimedRanking]
) -> str:
    """The figures in words; `burst` are the rankings of the records sent at full speed."""
    last = rankings[-1].ranking
    selected = SelectedFeatures.top(stream, last)
    with_selected = cluster_quality(stream, selected.masks)
    with_all = cluster_quality(stream, all_features(stream))
    gaps = [timed.ranking.sequence for timed in rankings] != list(range(1, len(rankings) + 1))
    rate = records_per_second(burst)
    return "\n".join(
        [
            f"{last.records.total:,} records in {len(rankings)} chunks of {CHUNK} gave "
            f"{len(rankings)} rankings, "
            + ("but their sequence has gaps" if gaps else "each published once, without a gap"),
            *([] if rate is None else [f"{rate:,.0f} records/s at full speed"]),
            f"{selected.useless} of the {selected.count} selected features are useless ones "
            f"({selected.useless / selected.count:.0%}; {stream.useless / stream.features:.0%} of "
            "all features are)",
            "agreement of clusters with the digits, which the selector does not see (NMI, best 1):",
            f"  {'':24}{'unscaled':>14}{'scaled to [0, 1]':>20}",
            _row(f"all {stream.features} features", with_all),
            _row(f"the {selected.count} selected", with_selected),
        ]
    )


def _row(label: str, quality: ClusterQuality) -> str:
    return f"  {label:24}{quality.raw:>14.2f}{quality.scaled:>20.2f}"


@dataclass(frozen=True)
class ClusterQuality:
    """NMI of clusters and digits, with raw features and with features scaled to [0, 1]."""

    raw: float
    scaled: float


@dataclass(frozen=True)
class SelectedFeatures:
    """The first features of a ranking."""

    masks: tuple[Mask, ...]
    count: int
    useless: int

    @classmethod
    def top(cls, stream: DemoStream, ranking: RankingMessage) -> SelectedFeatures:
        """A share of all features, divided between the views by the selector's rule."""
        by_name = {view.name: view for view in ranking.views}
        counts = split_budget([len(view.names) for view in stream.views], SHARE, "sqrt")
        masks = []
        for view, count in zip(stream.views, counts, strict=True):
            mask = np.zeros(len(view.names), dtype=np.bool_)
            mask[[feature.index for feature in by_name[view.name].features[:count]]] = True
            masks.append(mask)
        useless = sum(
            int((mask & view.useless).sum()) for mask, view in zip(masks, stream.views, strict=True)
        )
        return cls(tuple(masks), sum(counts), useless)


def cluster_quality(stream: DemoStream, masks: Sequence[Mask]) -> ClusterQuality:
    """Agreement of the digits with clusters of the images on these features."""
    instances, views = len(stream.labels), len(stream.views)
    present = remove_views(instances, views, MISSING, np.random.default_rng(1))
    complete = tuple(view.values.astype(np.float64) for view in stream.views)
    data = IncompleteViews(complete, present).select(masks)
    raw, scaled = (
        agreement(
            stream.labels, spectral(view_graphs(data, scaled=scale), instances, CLUSTERS, seed=0)
        ).nmi
        for scale in (False, True)
    )
    return ClusterQuality(raw, scaled)


def all_features(stream: DemoStream) -> list[Mask]:
    """The masks that select all features."""
    return [np.ones(len(view.names), dtype=np.bool_) for view in stream.views]
