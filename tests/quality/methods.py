"""The methods that are compared: from incomplete views to masks of selected features.

The selectors (``default``, ``paper``) read the rows as a stream; the baselines see all at once.
``default`` divides a share between the views by its own rule, all others proportionally.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from stream_fs import MultiViewSelector, View
from stream_fs.evaluate import baselines
from stream_fs.evaluate.data import IncompleteViews, Mask, Matrix

RANDOM_DRAWS = 4
EVERYTHING = 1.0


@dataclass(frozen=True)
class Problem:
    """What a method is given: rows in stream order, the number of clusters, a seed."""

    data: IncompleteViews
    clusters: int
    seed: int


Selections = Mapping[float, Sequence[Sequence[Mask]]]
"""Share of features → one or more draws, each with a mask (d_v) per view."""


def everything(problem: Problem, _shares: Sequence[float]) -> Selections:
    masks = [np.ones(x.shape[1], dtype=np.bool_) for x in problem.data.views]
    return {EVERYTHING: [masks]}


def random(problem: Problem, shares: Sequence[float]) -> Selections:
    generator = np.random.default_rng(problem.seed)
    draws = [baselines.random(problem.data, generator) for _ in range(RANDOM_DRAWS)]
    return {f: [baselines.proportional_top(scores, f) for scores in draws] for f in shares}


def variance(problem: Problem, shares: Sequence[float]) -> Selections:
    scores = baselines.variance(problem.data)
    return {f: [baselines.proportional_top(scores, f)] for f in shares}


def laplacian(problem: Problem, shares: Sequence[float]) -> Selections:
    scores = baselines.laplacian(problem.data)
    return {f: [baselines.proportional_top(scores, f)] for f in shares}


def mini_batch_nmf(problem: Problem, shares: Sequence[float]) -> Selections:
    scores = baselines.mini_batch_nmf(problem.data, problem.clusters, problem.seed)
    return {f: [baselines.proportional_top(scores, f)] for f in shares}


def default(problem: Problem, shares: Sequence[float]) -> Selections:
    views = [View(name, x.shape[1]) for name, x in named(problem.data)]
    return streamed(MultiViewSelector(views, problem.clusters, seed=problem.seed), problem, shares)


def paper(problem: Problem, shares: Sequence[float]) -> Selections:
    views = [View(name, x.shape[1], transform="unit") for name, x in named(problem.data)]
    selector = MultiViewSelector(views, problem.clusters, preset="paper", seed=problem.seed)
    return streamed(selector, problem, shares)


METHODS: Mapping[str, Callable[[Problem, Sequence[float]], Selections]] = {
    "all": everything,
    "default": default,
    "variance": variance,
    "paper": paper,
    "MiniBatchNMF": mini_batch_nmf,
    "Laplacian": laplacian,
    "random": random,
}


def streamed(selector: MultiViewSelector, problem: Problem, shares: Sequence[float]) -> Selections:
    """Feed all rows to the selector, chunk by chunk, and take its choice after the last."""
    views = named(problem.data)
    for rows in chunks(len(problem.data.present), problem.clusters):
        selector.partial_fit(
            {name: x[rows] for name, x in views},
            present={name: problem.data.present[rows, v] for v, (name, _) in enumerate(views)},
        )
    selector.flush()
    supports = {share: selector.get_support(share) for share in shares}
    return {share: [[support[name] for name, _ in views]] for share, support in supports.items()}


def chunks(instances: int, clusters: int) -> Iterator[slice]:
    """Cut the stream: chunks of about max(100, n/10) rows, the first of at least 20 per cluster.

    What follows the first chunk is divided evenly, so that no chunk is a small rest.
    """
    size = max(100, instances // 10)
    first = min(instances, max(size, 20 * clusters))
    yield slice(0, first)
    count = max(1, round((instances - first) / size))
    bounds = np.linspace(first, instances, count + 1).astype(int).tolist()
    for start, stop in pairwise(bounds):
        if start < stop:
            yield slice(start, stop)


def named(data: IncompleteViews) -> list[tuple[str, Matrix]]:
    return [(f"view_{v}", x) for v, x in enumerate(data.views)]
