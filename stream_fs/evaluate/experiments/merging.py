"""The cost of merging: a stream in P partitions with a model each, compared with one model.

Compared are, always with the redundancy order of the merged sketch:

    single    one model of all rows
    again     one model of the same rows in another order: its overlap with `single` is the most
              that can be expected of two equally good rankings
    merged    `merge` of the partitions' models: what the service publishes
    matched   the same with one permutation per model (Hungarian assignment to the merged means)
    averaged  the models' relevances averaged, weighted by their rows: needs no common clusters
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stream_fs.evaluate.datasets import Labels, Mask
from stream_fs.evaluate.experiments.stability import overlap
from stream_fs.evaluate.methods.registry import METHODS, declared_views
from stream_fs.evaluate.plan import (
    LARGE,
    DataSetEntry,
    DataSetExperiment,
    Options,
    Row,
    Settings,
)
from stream_fs.evaluate.protocol import JudgePanel, Trial
from stream_fs.selector import State, initial_state, params, read_chunk, update
from stream_fs.selector.merge.combine import combine, merge
from stream_fs.selector.merge.common_space import in_common_space
from stream_fs.selector.ranking import counts, view_orders, view_scores

METHOD_NAMES = ("merged", "matched", "averaged")
PARTITIONS = (2, 4, 8, 16, 32)
QUICK_PARTITIONS = 4
"""Largest number of partitions in a quick run."""
MIN_ROWS = 40
"""Rows of a partition per cluster."""
SHARE = 0.2
REPETITIONS = 3
Partitioning: TypeAlias = Literal["even", "keyed"]
"""`keyed` spreads every class unevenly over partitions, like a message key that depends on it."""
PARTITIONINGS: tuple[Partitioning, ...] = get_args(Partitioning)
CONCENTRATION = 0.5
"""Of the Dirichlet distribution by which a class is spread over keyed partitions."""
ROUNDS = 20
"""Of matching to the merged means, which converges after a few."""

Rows: TypeAlias = NDArray[np.intp]
Scores: TypeAlias = Mapping[str, NDArray[np.float64]]


def plan(options: Options, entry: DataSetEntry) -> list[Settings]:
    """One per repetition and partitioning, if there are enough rows for two partitions."""
    if entry.instances < PARTITIONS[0] * MIN_ROWS * entry.classes:
        return []
    few = options.quick or entry.instances > LARGE
    partitionings = PARTITIONINGS[:1] if few else PARTITIONINGS
    return merging_settings(options, options.repetitions_on(entry, REPETITIONS), partitionings)


def merging_settings(
    options: Options, repetitions: int, partitionings: Sequence[Partitioning]
) -> list[Settings]:
    """One per repetition and partitioning."""
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "cut": partitioning,
            "most": QUICK_PARTITIONS if options.quick else PARTITIONS[-1],
            "identity": METHODS["default"].identity,
        }
        for repetition in range(repetitions)
        for partitioning in partitionings
    ]


def measure(trial: Trial, labels: Labels, settings: Settings) -> list[Row]:
    """Overlap with the selection of one model, and NMI, by number of partitions and method."""
    # The comparison with `matched` adds little, and judging large sets takes long.
    large = len(labels) > LARGE
    comparison = MergingComparison(
        trial,
        labels,
        partitions=tuple(p for p in PARTITIONS if p <= int(settings["most"])),
        partitioning="keyed" if settings["cut"] == "keyed" else "even",
        methods=("merged", "averaged") if large else METHOD_NAMES,
    )
    return list(comparison.rows())


@dataclass(frozen=True)
class MergingComparison:
    """One trial, the ways to divide it into partitions, and the methods that are compared.

    Numbers of partitions that would leave fewer than ``min_rows`` rows per cluster are left out.
    """

    trial: Trial
    labels: Labels
    partitions: tuple[int, ...]
    partitioning: Partitioning = "even"
    methods: tuple[str, ...] = METHOD_NAMES
    min_rows: int = MIN_ROWS

    def rows(self) -> Iterator[Row]:
        """One per selection: its overlap with that of the single model, and its NMI by judge."""
        size = self.trial.instances
        panel = JudgePanel(self.trial, self.labels)
        single = fit_model(self.trial, np.arange(size), "single")
        reference = select_features(single, view_scores(single))

        def row(partitions: int, method: str, masks: Sequence[Mask]) -> Row:
            nmi = {judge: agreement.nmi for judge, agreement in panel.judge(masks).items()}
            return {
                "partitions": partitions,
                "rows": size // partitions,
                "method": method,
                "overlap": overlap(masks, reference),
                "nmi": float(np.mean(list(nmi.values()))),
                **{f"nmi {judge}": value for judge, value in nmi.items()},
            }

        yield row(1, "single", reference)
        order = np.random.default_rng(self.trial.seed).permutation(size)
        again = fit_model(self.trial, order, "again")
        yield row(1, "again", select_features(again, view_scores(again)))
        for partitions in self.partitions:
            if size < partitions * self.min_rows * self.trial.clusters:
                continue
            parts = divide(self.trial, self.labels, partitions, self.partitioning)
            models = [fit_model(self.trial, part, str(p)) for p, part in enumerate(parts)]
            for method, masks in selections(models, self.methods).items():
                yield row(partitions, method, masks)


def divide(trial: Trial, labels: Labels, partitions: int, partitioning: Partitioning) -> list[Rows]:
    """The rows of every partition; keyed partitions with too few rows to cluster are dropped."""
    size = trial.instances
    if partitioning == "even":
        return [np.arange(p, size, partitions) for p in range(partitions)]
    generator = np.random.default_rng([trial.seed, partitions])
    classes = int(labels.max()) + 1
    shares = generator.dirichlet([CONCENTRATION] * partitions, classes)
    exceeded = generator.random(size)[:, None] > shares[labels].cumsum(axis=1)[:, :-1]
    partition = exceeded.sum(axis=1)
    parts = [np.flatnonzero(partition == p) for p in range(partitions)]
    return [part for part in parts if len(part) >= trial.clusters]


def fit_model(trial: Trial, rows: Rows, origin: str) -> State:
    """A model of these rows: a first chunk of 20 rows per cluster, then tenths, at least 100."""
    data = trial.data
    values = params(declared_views(data), trial.clusters, seed=trial.seed)
    state = initial_state(values, origin)
    step = max(100, len(rows) // 10)
    bounds = [0, *range(max(step, values.first_chunk_rows), len(rows) - step // 2, step)]
    for low, high in zip(bounds, [*bounds[1:], len(rows)], strict=True):
        at = rows[low:high]
        inputs = {view.name: x[at] for view, x in zip(values.views, data.views, strict=True)}
        present = {view.name: data.present[at, v] for v, view in enumerate(values.views)}
        state, _ = update(state, read_chunk(values.views, inputs, present))
    return state


def selections(models: Sequence[State], methods: Sequence[str]) -> dict[str, list[Mask]]:
    """The selected features by merging method."""
    merged = merge(models)
    scores: Mapping[str, Callable[[], Scores]] = {
        "merged": lambda: view_scores(merged),
        "matched": lambda: view_scores(merge_matched(models)),
        "averaged": lambda: average_scores(models),
    }
    return {method: select_features(merged, scores[method]()) for method in methods}


def select_features(model: State, scores: Scores) -> list[Mask]:
    """Masks of the first features by these scores and the redundancy of the model."""
    wanted = counts(model, SHARE)
    masks = []
    for name, order in view_orders(model, scores, wanted).items():
        mask = np.zeros(len(order), np.bool_)
        mask[order[: wanted[name]]] = True
        masks.append(mask)
    return masks


def average_scores(models: Sequence[State]) -> dict[str, NDArray[np.float64]]:
    """Mean of the models' scores, weighted by their rows."""
    scores = [view_scores(model) for model in models]
    mean = {}
    for name in models[0].views:
        rows = np.array([model.views[name].n for model in models])
        mean[name] = rows @ [by_view[name] for by_view in scores] / max(rows.sum(), 1.0)
    return mean


def merge_matched(models: Sequence[State]) -> State:
    """The sum of the models after one-to-one matching of their clusters with the merged means.

    The largest model comes first; matching to the merged means is repeated until no cluster moves.
    """
    models = in_common_space(sorted(models, key=lambda model: -model.total))
    orders = [np.arange(models[0].params.clusters)]
    for model in models[1:]:
        orders.append(_match(combine(models[: len(orders)], orders), model))
    for _ in range(ROUNDS):
        merged = combine(models, orders)
        matched = [_match(merged, model) for model in models]
        if all(np.array_equal(a, b) for a, b in zip(matched, orders, strict=True)):
            break
        orders = matched
    return combine(models, orders)


def _match(reference: State, model: State) -> NDArray[np.intp]:
    """For every cluster of the model the cluster of the reference, by cosine over all views."""
    similarity = np.zeros((model.params.clusters, model.params.clusters))
    for name in model.views:
        similarity += _directions(model, name).T @ _directions(reference, name)
    return np.asarray(linear_sum_assignment(-similarity)[1])


def _directions(model: State, name: str) -> NDArray[np.float64]:
    """Centred cluster means (d×K), scaled to unit length."""
    view = model.views[name]
    assert view.moments is not None, "the default preset keeps moments"
    C = view.moments.C
    means = view.moments.Z / np.where(C > 0, C, 1.0) - (view.sum / max(view.n, 1.0))[:, None]
    lengths = np.where(C > 0, np.linalg.norm(means, axis=0), np.inf)
    return np.asarray(means / np.where(lengths > 0, lengths, 1.0), np.float64)


EXPERIMENT = DataSetExperiment(plan, measure)
