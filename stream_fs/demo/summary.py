"""What the demo has shown, in figures, and whether the chosen features are any good.

The labels, which the selector never saw, judge: the incomplete images are clustered (spectral
clustering on the summed neighbour graphs), once with all features and once with the chosen ones.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.demo.dataset import CHUNK, CLUSTERS, MISSING, PASSES, SHARE, DemoStream
from stream_fs.demo.display import TimedRanking, speed
from stream_fs.evaluate.datasets import IncompleteViews, Mask
from stream_fs.evaluate.graphs import view_graphs
from stream_fs.evaluate.judges import agreement, spectral
from stream_fs.evaluate.protocol import remove_views
from stream_fs.selector.ranking import shares
from stream_fs.wire import RankingMessage


def describe(stream: DemoStream, passes: int) -> str:
    """What will be streamed; `passes` is how often the file of the stream is."""
    views = ", ".join(f"{view.name} ({len(view.names)})" for view in stream.views)
    second = ", and all that again as fast as it goes" if passes > 1 else ""
    return (
        f"{len(stream.labels):,} handwritten digits of scikit-learn, each described by "
        f"{len(stream.views)} views: {views}. {MISSING:.0%} of every view is missing. "
        f"{stream.useless} of the {stream.features} features are useless: noise, constants, heavy "
        f"tails. The digits come {PASSES} times, in another order and with other views missing "
        f"each time{second}: {passes * stream.records:,} records."
    )


def summary(stream: DemoStream, seen: Sequence[TimedRanking], fast: Sequence[TimedRanking]) -> str:
    """What has been seen, in plain words; `fast` are the rankings of records without a pause."""
    last = seen[-1].ranking
    chosen = ChosenFeatures.top(stream, last)
    with_chosen, with_all = quality(stream, chosen.masks), quality(stream, everything(stream))
    gaps = [one.ranking.sequence for one in seen] != list(range(1, len(seen) + 1))
    rate = speed(fast)
    return "\n".join(
        [
            f"{last.records.total:,} records in {len(seen)} chunks of {CHUNK} gave {len(seen)} "
            + "rankings, "
            + ("but their sequence has gaps" if gaps else "each published once, without a gap"),
            *([] if rate is None else [f"{rate:,.0f} records/s when they came without a pause"]),
            f"{chosen.useless} of the {chosen.count} chosen features are useless ones "
            f"({chosen.useless / chosen.count:.0%}; {stream.useless / stream.features:.0%} of all "
            "features are)",
            "clusters against the digits, which the selector never saw (NMI, 1 is perfect):",
            f"  {'':24}{'as they are':>14}{'scaled to [0, 1]':>20}",
            _row(f"all {stream.features} features", with_all),
            _row(f"the {chosen.count} chosen", with_chosen),
        ]
    )


def _row(what: str, found: ClusterQuality) -> str:
    return f"  {what:24}{found.raw:>14.2f}{found.scaled:>20.2f}"


@dataclass(frozen=True)
class ClusterQuality:
    """NMI of clusters and digits, with features as they are and scaled to [0, 1]."""

    raw: float
    scaled: float


@dataclass(frozen=True)
class ChosenFeatures:
    """The top of a ranking."""

    masks: tuple[Mask, ...]
    count: int
    useless: int

    @classmethod
    def top(cls, stream: DemoStream, ranking: RankingMessage) -> ChosenFeatures:
        """A share of all features, divided between the views by the selector's rule."""
        by_name = {view.name: view for view in ranking.views}
        counts = shares([len(view.names) for view in stream.views], SHARE, "sqrt")
        masks = []
        for view, count in zip(stream.views, counts, strict=True):
            mask = np.zeros(len(view.names), dtype=np.bool_)
            mask[[feature.index for feature in by_name[view.name].features[:count]]] = True
            masks.append(mask)
        useless = sum(
            int((mask & view.useless).sum()) for mask, view in zip(masks, stream.views, strict=True)
        )
        return cls(tuple(masks), sum(counts), useless)


def quality(stream: DemoStream, masks: Sequence[Mask]) -> ClusterQuality:
    """How well the images fall into the digits, seen with these features alone."""
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


def everything(stream: DemoStream) -> list[Mask]:
    """The masks that choose all features."""
    return [np.ones(len(view.names), dtype=np.bool_) for view in stream.views]
