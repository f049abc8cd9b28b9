"""The paper's protocol: views are removed, rows arrive in chunks, selections are judged.

A method sees a trial; the labels are kept apart from it, for the judges alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from stream_fs.evaluate.datasets import DataSet, IncompleteViews, Labels, Mask
from stream_fs.evaluate.graphs import view_graphs
from stream_fs.evaluate.judges import JUDGES, Agreement, agreement


def remove_views(instances: int, views: int, share: float, generator: np.random.Generator) -> Mask:
    """Presence mask (instances × views) with ``share`` of every view's instances removed.

    Every instance keeps at least one view. Each view loses exactly ``round(share · n)``
    instances where that is possible, that is while ``views · removed ≤ (views − 1) · n``;
    beyond that, all views lose as many as possible, with counts that differ by at most one.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie in [0, 1], not {share}")
    present = np.ones((instances, views), dtype=np.bool_)
    for view, count in enumerate(_removed_per_view(instances, views, share, generator)):
        present[generator.permutation(instances)[:count], view] = False
    _ensure_one_view(present, generator)
    return present


def _removed_per_view(
    instances: int, views: int, share: float, generator: np.random.Generator
) -> NDArray[np.int64]:
    wanted = round(share * instances)
    most = instances * (views - 1)
    counts = np.full(views, min(wanted, most // views), dtype=np.int64)
    if wanted > most // views:
        counts[generator.permutation(views)[: most % views]] += 1
    return counts


def _ensure_one_view(present: Mask, generator: np.random.Generator) -> None:
    """Exchange views between instances until every instance has at least one, in place.

    An instance with c views gives away at most c − 1. The counts of the views do not change.
    """
    empty = np.flatnonzero(~present.any(axis=1))
    keys = np.where(present, generator.random(present.shape), np.inf)
    spare = present.copy()
    spare[np.arange(len(present)), keys.argmin(axis=1)] = False
    instances, views = np.nonzero(spare)
    chosen = generator.permutation(len(instances))[: len(empty)]
    present[instances[chosen], views[chosen]] = False
    present[empty, views[chosen]] = True


@dataclass(frozen=True)
class Trial:
    """The input of a method: incomplete rows in stream order, the number of clusters, a seed."""

    data: IncompleteViews
    clusters: int
    seed: int

    @property
    def instances(self) -> int:
        """Number of rows."""
        return len(self.data.present)

    @property
    def dimensions(self) -> list[int]:
        """Number of features of every view."""
        return [x.shape[1] for x in self.data.views]

    def first_rows(self, stop: int) -> Trial:
        """The trial up to a row, as if the later ones had not arrived yet."""
        views = tuple(x[:stop] for x in self.data.views)
        return replace(self, data=IncompleteViews(views, self.data.present[:stop]))


def make_trial(
    dataset: DataSet, repetition: int, missing: float, published: Mask | None = None
) -> tuple[Trial, Labels]:
    """Remove views and shuffle the rows; the number of the repetition is the seed of both.

    ``published`` (n × views, true = present) replaces the random removal.
    """
    generator = np.random.default_rng(repetition)
    present = published
    if present is None:
        present = remove_views(dataset.instances, len(dataset.views), missing, generator)
    order = generator.permutation(dataset.instances)
    data = IncompleteViews(tuple(x[order] for x in dataset.views), present[order])
    return Trial(data, dataset.classes, repetition), dataset.labels[order]


def chunks(instances: int, clusters: int) -> Iterator[slice]:
    """Divide the stream into chunks of about max(100, n/10) rows, the first of ≥ 20 per cluster.

    The rows after the first chunk are divided evenly, so that there is no small last chunk.
    """
    size = max(100, instances // 10)
    first = min(instances, max(size, 20 * clusters))
    yield slice(0, first)
    count = max(1, round((instances - first) / size))
    yield from even_slices(first, instances, count)


def even_slices(start: int, stop: int, count: int) -> Iterator[slice]:
    """Divide rows start … stop into ``count`` slices of nearly equal size; none is empty."""
    bounds = np.linspace(start, stop, count + 1).astype(int).tolist()
    for low, high in pairwise(bounds):
        if low < high:
            yield slice(low, high)


SCALINGS: Mapping[str, bool] = {"raw": False, "scaled": True}
JUDGE_VARIANTS = tuple(f"{name} {scaling}" for name in JUDGES for scaling in SCALINGS)
"""Every judge on raw and on scaled features."""
SCALED_JUDGES = tuple(f"{name} scaled" for name in JUDGES)


class JudgePanel:
    """The judges of one trial; agreements are cached by selection."""

    def __init__(
        self, trial: Trial, labels: Labels, variants: Sequence[str] = JUDGE_VARIANTS
    ) -> None:
        self.trial = trial
        self._labels = labels
        self._variants = tuple(variants)
        self._cache: dict[bytes, dict[str, Agreement]] = {}

    def judge(self, masks: Sequence[Mask]) -> dict[str, Agreement]:
        """By judge variant, the agreement of the clusters on the selected features."""
        key = np.packbits(np.concatenate(masks)).tobytes()
        if key not in self._cache:
            self._cache[key] = self._judge(self.trial.data.select(masks))
        return self._cache[key]

    def _judge(self, selected: IncompleteViews) -> dict[str, Agreement]:
        agreements: dict[str, Agreement] = {}
        trial = self.trial
        for scaling, scaled in SCALINGS.items():
            judges = [name for name in JUDGES if f"{name} {scaling}" in self._variants]
            graphs = view_graphs(selected, scaled=scaled) if judges else []
            for name in judges:
                clusters = JUDGES[name](graphs, trial.instances, trial.clusters, trial.seed)
                agreements[f"{name} {scaling}"] = agreement(self._labels, clusters)
        return agreements


def mean_agreement(values: Sequence[Agreement]) -> Agreement:
    """The mean over the draws of a method."""
    return Agreement(
        nmi=float(np.mean([value.nmi for value in values])),
        ari=float(np.mean([value.ari for value in values])),
        f=float(np.mean([value.f for value in values])),
    )
