"""Properties that a clustering does not show: useless features, copies, and other units.

Generated data of three views with four groups; half of every view's instances are missing. Each
view has informative features (shifted in one group), noise, and useless features of kinds that
mislead simple scores: loud (noise of a hundred times the variance), constant, heavy-tailed
(log-normal). A second data set has every informative feature three times: unchanged, copied, and
copied in another unit.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from stream_fs.evaluate.datasets import IncompleteViews, Matrix
from stream_fs.evaluate.experiments.stability import in_other_units
from stream_fs.evaluate.methods import baselines
from stream_fs.evaluate.methods.registry import ALL_FEATURES, METHODS, Method, Orders, by_scores
from stream_fs.evaluate.plan import Options, Row, Settings, SyntheticExperiment
from stream_fs.evaluate.protocol import Trial, remove_views

GROUPS = 4
ROWS = 800
VIEWS = 3
KINDS = {"informative": 12, "noise": 12, "loud": 6, "constant": 3, "heavy-tailed": 3}
REPETITIONS = 5
COMPARED: Mapping[str, Method] = {
    **{name: method for name, method in METHODS.items() if name != ALL_FEATURES},
    # The simple remedy for units.
    "variance, scaled": by_scores(
        "variance, scaled", lambda trial: baselines.scaled_variance(trial.data)
    ),
}


@dataclass(frozen=True)
class Planted:
    """A trial with known features: the kind of each, and the index of the original of a copy."""

    trial: Trial
    kinds: list[str]
    originals: list[int]


def plan(options: Options) -> list[Settings]:
    """One per repetition and method."""
    return [
        {"repetition": repetition, "method": method.name, "identity": method.identity}
        for repetition in range(options.repetitions_up_to(REPETITIONS))
        for method in COMPARED.values()
    ]


def measure(settings: Settings) -> list[Row]:
    """Shares of useless features and copies among the first, and the effect of other units."""
    seed = int(settings["repetition"])
    rank = COMPARED[str(settings["method"])].rank
    planted = with_useless(seed)
    orders = rank(planted.trial)[0]
    row: Row = {
        f"useless: {kind}": selected_share(orders, planted.kinds, kind)
        for kind in KINDS
        if kind != "informative"
    }
    row["auc"] = area(orders, planted.kinds)
    rescaled = in_other_units(planted.trial)
    assert rescaled is not None, "no view consists of counts"
    row["rank correlation in other units"] = correlation(orders, rank(rescaled)[0])
    copies = with_copies(seed)
    row["repeats"] = repeats(rank(copies.trial)[0], copies)
    return [row]


def with_useless(seed: int) -> Planted:
    """Views with every kind of feature, in a random order that is the same in every view."""
    generator = np.random.default_rng(seed)
    labels = generator.permutation(np.arange(ROWS) % GROUPS)
    kinds = [kind for kind, count in KINDS.items() for _ in range(count)]
    order = generator.permutation(len(kinds))
    views = tuple(_useless_view(labels, generator)[:, order] for _ in range(VIEWS))
    return Planted(
        _trial(views, generator, seed),
        [kinds[i] for i in order],
        list(range(len(kinds))),
    )


def with_copies(seed: int) -> Planted:
    """Eight informative features, weak to strong, each with two copies; and noise."""
    generator = np.random.default_rng(seed + 1000)
    labels = generator.permutation(np.arange(ROWS) % GROUPS)
    count = 8
    originals = [*range(count)] * 3 + list(range(count, 2 * count))
    kinds = ["informative"] * (3 * count) + ["noise"] * count
    order = generator.permutation(len(kinds))
    views = []
    for _ in range(VIEWS):
        x = generator.random((ROWS, count))
        for feature in range(count):
            x[labels == feature % GROUPS, feature] += 0.4 + 0.1 * feature
        units = 10.0 ** generator.uniform(-1, 1, count)
        noise = generator.random((ROWS, count))
        views.append(np.hstack([x, x, units * x, noise])[:, order])
    return Planted(
        _trial(tuple(views), generator, seed),
        [kinds[i] for i in order],
        [originals[i] for i in order],
    )


def _useless_view(labels: Matrix, generator: np.random.Generator) -> Matrix:
    n = len(labels)
    return np.hstack(
        [
            _informative(labels, KINDS["informative"], generator),
            generator.random((n, KINDS["noise"])),
            10 * generator.random((n, KINDS["loud"])),
            np.full((n, KINDS["constant"]), 5.0),
            np.exp(1.5 * generator.standard_normal((n, KINDS["heavy-tailed"]))),
        ]
    )


def _informative(labels: Matrix, count: int, generator: np.random.Generator) -> Matrix:
    x = generator.random((len(labels), count))
    for feature in range(count):
        x[labels == feature % GROUPS, feature] += 0.7
    return x


def _trial(views: tuple[Matrix, ...], generator: np.random.Generator, seed: int) -> Trial:
    present = remove_views(len(views[0]), len(views), 0.5, generator)
    return Trial(IncompleteViews(views, present), GROUPS, seed)


def selected_share(orders: Orders, kinds: Sequence[str], kind: str) -> float:
    """Share of a kind's features among as many first features as there are informative ones."""
    count = sum(name == "informative" for name in kinds)
    of_kind = np.array([name == kind for name in kinds])
    return float(np.mean([of_kind[order[:count]].sum() / of_kind.sum() for order in orders]))


def area(orders: Orders, kinds: Sequence[str]) -> float:
    """Probability that an informative feature precedes another kind (area under the curve)."""
    good = np.array([kind == "informative" for kind in kinds])
    areas = []
    for order in orders:
        rank = np.empty(len(order))
        rank[order] = np.arange(len(order))
        areas.append((rank[good][:, None] < rank[~good][None, :]).mean())
    return float(np.mean(areas))


def correlation(orders: Orders, others: Orders) -> float:
    """Mean rank correlation of two orders of the same features."""
    correlations = []
    for order, other in zip(orders, others, strict=True):
        ranks = np.argsort(order), np.argsort(other)
        correlations.append(float(stats.spearmanr(*ranks).statistic))
    return float(np.mean(correlations))


def repeats(orders: Orders, planted: Planted) -> float:
    """Share of copies of an earlier feature among as many first features as there are originals."""
    originals = np.array(planted.originals)
    count = len(
        {o for o, kind in zip(originals, planted.kinds, strict=True) if kind == "informative"}
    )
    return float(
        np.mean([1 - len(set(originals[order[:count]].tolist())) / count for order in orders])
    )


EXPERIMENT = SyntheticExperiment(plan, measure)
