"""The paper's protocol: views are taken away, rows arrive in chunks, clusterings are judged.

A problem is what a method sees; its labels are kept apart, for the judges alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
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
    beyond, all views lose as many as they can, equal to within one.
    """
    if not 0 <= share <= 1:
        raise ValueError(f"share must lie in [0, 1], not {share}")
    present = np.ones((instances, views), dtype=np.bool_)
    for view, count in enumerate(_removed_per_view(instances, views, share, generator)):
        present[generator.permutation(instances)[:count], view] = False
    _give_back(present, generator)
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


def _give_back(present: Mask, generator: np.random.Generator) -> None:
    """Give every instance without a view one that another instance can spare, in place.

    An instance with c views can spare c − 1 of them. The views' counts do not change.
    """
    empty = np.flatnonzero(~present.any(axis=1))
    keys = np.where(present, generator.random(present.shape), np.inf)
    spare = present.copy()
    spare[np.arange(len(present)), keys.argmin(axis=1)] = False
    givers, given = np.nonzero(spare)
    chosen = generator.permutation(len(givers))[: len(empty)]
    present[givers[chosen], given[chosen]] = False
    present[empty, given[chosen]] = True


SCALES: Mapping[str, bool] = {"raw": False, "scaled": True}
LOOKS = tuple(f"{name} {scale}" for name in JUDGES for scale in SCALES)
"""Every judge on raw and on scaled features."""


@dataclass(frozen=True)
class Problem:
    """What a method is given: rows in stream order, the number of clusters, a seed."""

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


def make_problem(
    dataset: DataSet, repetition: int, missing: float, published: Mask | None = None
) -> tuple[Problem, Labels]:
    """Take views away and shuffle the rows; the repetition's number is the seed of everything.

    ``published`` (n × views, true = present) takes the place of a removal at random.
    """
    generator = np.random.default_rng(repetition)
    present = published
    if present is None:
        present = remove_views(dataset.instances, len(dataset.views), missing, generator)
    order = generator.permutation(dataset.instances)
    data = IncompleteViews(tuple(x[order] for x in dataset.views), present[order])
    return Problem(data, dataset.classes, repetition), dataset.labels[order]


def chunks(instances: int, clusters: int) -> Iterator[slice]:
    """Cut the stream: chunks of about max(100, n/10) rows, the first of at least 20 per cluster.

    What follows the first chunk is divided evenly, so that no chunk is a small rest.
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


class Bench:
    """The judges before one problem; a selection that was judged is not judged again."""

    def __init__(self, problem: Problem, labels: Labels, looks: Sequence[str] = LOOKS) -> None:
        self.problem = problem
        self._labels = labels
        self._looks = tuple(looks)
        self._judged: dict[bytes, dict[str, Agreement]] = {}

    def judge(self, masks: Sequence[Mask]) -> dict[str, Agreement]:
        """How the clusters on the selected features agree with the classes, look by look."""
        key = np.packbits(np.concatenate(masks)).tobytes()
        if key not in self._judged:
            self._judged[key] = self._look(self.problem.data.select(masks))
        return self._judged[key]

    def _look(self, selected: IncompleteViews) -> dict[str, Agreement]:
        found: dict[str, Agreement] = {}
        for scale, scaled in SCALES.items():
            wanted = [name for name in JUDGES if f"{name} {scale}" in self._looks]
            views = view_graphs(selected, scaled=scaled) if wanted else []
            for name in wanted:
                clusters = JUDGES[name](
                    views, len(self._labels), self.problem.clusters, self.problem.seed
                )
                found[f"{name} {scale}"] = agreement(self._labels, clusters)
        return found


def mean_agreement(values: Sequence[Agreement]) -> Agreement:
    """The mean over a method's draws."""
    return Agreement(
        nmi=float(np.mean([value.nmi for value in values])),
        ari=float(np.mean([value.ari for value in values])),
        f=float(np.mean([value.f for value in values])),
    )
