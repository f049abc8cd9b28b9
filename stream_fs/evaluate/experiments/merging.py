"""What merging costs: one stream in P partitions, a model each, against one model of all of it.

Compared are, always with the redundancy order of the merged sketch:

    single    one model over all rows
    again     one model over the same rows in another order: how far two rankings that are as
              good as each other agree, and so what an overlap can be expected to reach
    merged    `merge` of the partitions' models: what the service publishes
    matched   the same with one permutation per model (Hungarian assignment to the merged means)
    averaged  the models' relevances averaged, weighted by their rows: needs no common clusters
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stream_fs.evaluate.builtin_datasets import long_stream
from stream_fs.evaluate.datasets import Labels, Mask
from stream_fs.evaluate.methods.registry import METHODS, declared_views
from stream_fs.evaluate.plan import LARGE, Entry, OnData, OnMade, Options, Row, Settings
from stream_fs.evaluate.protocol import Bench, Problem, make_problem
from stream_fs.selector import Params, State, initial_state, params, read_chunk, update
from stream_fs.selector.merge.combine import combine, merge
from stream_fs.selector.merge.common_space import in_common_space
from stream_fs.selector.ranking import counts, view_orders, view_scores

WAYS = ("merged", "matched", "averaged")
Cut = Literal["even", "keyed"]
Rows = NDArray[np.intp]
Scores = Mapping[str, NDArray[np.float64]]
CONCENTRATION = 0.5
"""Of the Dirichlet distribution by which a class is spread over keyed partitions."""


@dataclass(frozen=True)
class Stream:
    """Rows in the order of their arrival; the labels are for the judges, and to cut by."""

    problem: Problem
    labels: Labels


@dataclass(frozen=True)
class MergingSettings:
    """Into how many partitions, how cut, and what is compared.

    Partitions with fewer than ``least_rows`` rows per cluster are left out. ``keyed`` spreads
    every class unevenly over the partitions, as a message key that has to do with it would.
    """

    partitions: tuple[int, ...] = (1, 2, 4, 8, 16, 32)
    least_rows: int = 40
    cut: Cut = "even"
    share: float = 0.2
    methods: tuple[str, ...] = WAYS


@dataclass(frozen=True)
class MergingRow:
    """One selection: overlap with that of the single model, and NMI by judge.

    ``rows`` is the mean number of rows of a partition.
    """

    partitions: int
    rows: int
    method: str
    overlap: float
    nmi: Mapping[str, float]


def measure_merging(stream: Stream, settings: MergingSettings) -> Iterator[MergingRow]:
    """All rows of one stream, as they are measured."""
    size = len(stream.labels)
    everything = np.arange(size)
    single = fit(stream, everything, "single")
    reference = choose(single, view_scores(single), settings.share)

    bench = Bench(stream.problem, stream.labels)

    def row(partitions: int, method: str, masks: Sequence[Mask]) -> MergingRow:
        rows = size // partitions
        overlap = shared(masks, reference)
        nmi = {look: found.nmi for look, found in bench.judge(masks).items()}
        return MergingRow(partitions, rows, method, overlap, nmi)

    yield row(1, "single", reference)
    other = np.random.default_rng(stream.problem.seed).permutation(size)
    again = fit(stream, other, "again")
    yield row(1, "again", choose(again, view_scores(again), settings.share))
    for partitions in settings.partitions:
        if partitions == 1 or size < partitions * settings.least_rows * stream.problem.clusters:
            continue
        parts = [fit(stream, at, str(p)) for p, at in enumerate(cut(stream, partitions, settings))]
        for method, masks in selections(parts, settings).items():
            yield row(partitions, method, masks)


def selections(models: Sequence[State], settings: MergingSettings) -> dict[str, list[Mask]]:
    """The features that every way of merging selects."""
    merged = merge(models)
    ways: Mapping[str, Callable[[], Scores]] = {
        "merged": lambda: view_scores(merged),
        "matched": lambda: view_scores(matched(models)),
        "averaged": lambda: averaged(models),
    }
    return {way: choose(merged, ways[way](), settings.share) for way in settings.methods}


def cut(stream: Stream, partitions: int, settings: MergingSettings) -> list[Rows]:
    """Which rows go to which partition; one without enough rows to cluster gets none."""
    size = len(stream.labels)
    if settings.cut == "even":
        return [np.arange(p, size, partitions) for p in range(partitions)]
    generator = np.random.default_rng([stream.problem.seed, partitions])
    classes = int(stream.labels.max()) + 1
    spread = generator.dirichlet([CONCENTRATION] * partitions, classes)
    drawn = generator.random(size)[:, None] > spread[stream.labels].cumsum(axis=1)[:, :-1]
    home = drawn.sum(axis=1)
    rows = [np.flatnonzero(home == p) for p in range(partitions)]
    return [at for at in rows if len(at) >= stream.problem.clusters]


def fit(stream: Stream, rows: Rows, origin: str) -> State:
    """A model over these rows: a first chunk of 20 rows per cluster, then tenths, at least 100."""
    data = stream.problem.data
    state = initial_state(_params(stream), origin)
    step = max(100, len(rows) // 10)
    bounds = [0, *range(max(step, state.params.first_chunk_rows), len(rows) - step // 2, step)]
    for low, high in zip(bounds, [*bounds[1:], len(rows)], strict=True):
        at = rows[low:high]
        inputs = {view.name: x[at] for view, x in zip(state.params.views, data.views, strict=True)}
        present = {view.name: data.present[at, v] for v, view in enumerate(state.params.views)}
        state, _ = update(state, read_chunk(state.params.views, inputs, present))
    return state


def _params(stream: Stream) -> Params:
    problem = stream.problem
    return params(declared_views(problem.data), problem.clusters, seed=problem.seed)


def choose(model: State, scores: Scores, share: float) -> list[Mask]:
    """Masks of the first features by these scores and the model's redundancy."""
    wanted = counts(model, share)
    masks = []
    for name, order in view_orders(model, scores, wanted).items():
        mask = np.zeros(len(order), np.bool_)
        mask[order[: wanted[name]]] = True
        masks.append(mask)
    return masks


def shared(masks: Sequence[Mask], others: Sequence[Mask]) -> float:
    """Share of the selected features that both selections have."""
    both = sum(int((a & b).sum()) for a, b in zip(masks, others, strict=True))
    return both / sum(int(b.sum()) for b in others)


ROUNDS = 20
"""Of matching to the merged means; it settles after a few."""


def averaged(models: Sequence[State]) -> dict[str, NDArray[np.float64]]:
    """Mean of the models' scores, weighted by the rows behind them."""
    scored = [view_scores(model) for model in models]
    mean = {}
    for name in models[0].views:
        rows = np.array([model.views[name].n for model in models])
        mean[name] = rows @ [scores[name] for scores in scored] / max(rows.sum(), 1.0)
    return mean


def matched(models: Sequence[State]) -> State:
    """The sums of models whose clusters were matched one to one with the merged means.

    The largest model comes first; then all are matched to the merged means until none changes.
    """
    models = in_common_space(sorted(models, key=lambda model: -model.total))
    orders = [np.arange(models[0].params.clusters)]
    for model in models[1:]:
        orders.append(_match(combine(models[: len(orders)], orders), model))
    for _ in range(ROUNDS):
        merged = combine(models, orders)
        after = [_match(merged, model) for model in models]
        if all(np.array_equal(a, b) for a, b in zip(after, orders, strict=True)):
            break
        orders = after
    return combine(models, orders)


def _match(reference: State, model: State) -> NDArray[np.intp]:
    """The cluster of the reference for every cluster of the model, by cosine over all views."""
    alike = np.zeros((model.params.clusters, model.params.clusters))
    for name in model.views:
        ours, theirs = _directions(model, name), _directions(reference, name)
        alike += ours.T @ theirs
    return np.asarray(linear_sum_assignment(-alike)[1])


def _directions(model: State, name: str) -> NDArray[np.float64]:
    """Centred cluster means (d×K), to unit length."""
    view = model.views[name]
    assert view.moments is not None, "the default preset keeps moments"
    C = view.moments.C
    means = view.moments.Z / np.where(C > 0, C, 1.0) - (view.sum / max(view.n, 1.0))[:, None]
    lengths = np.where(C > 0, np.linalg.norm(means, axis=0), np.inf)
    return np.asarray(means / np.where(lengths > 0, lengths, 1.0), np.float64)


PARTITIONS = (2, 4, 8, 16, 32)
QUICK = 4
"""Partitions at most in a quick run."""
LEAST_ROWS = 40
"""Of a partition, per cluster."""
LONG_ROWS = 10_240
LONG_ROWS_QUICK = 1_280
REPETITIONS = 3
CUTS: tuple[Cut, ...] = ("even", "keyed")


def plan(options: Options, entry: Entry) -> list[Settings]:
    """A task per repetition and cut, where there are rows for two partitions."""
    if entry.instances < PARTITIONS[0] * LEAST_ROWS * entry.classes:
        return []
    repetitions = options.repetitions_of(entry, REPETITIONS)
    cuts = CUTS[:1] if options.quick or entry.instances > LARGE else CUTS
    return list(_settings(options, repetitions, cuts))


def plan_long(options: Options) -> list[Settings]:
    """The same on the stream that is made."""
    rows = LONG_ROWS_QUICK if options.quick else LONG_ROWS
    settings = _settings(options, min(options.repetitions, REPETITIONS), CUTS[:1])
    return [{**of, "instances": rows} for of in settings]


def _settings(options: Options, repetitions: int, cuts: tuple[Cut, ...]) -> Iterator[Settings]:
    for repetition in range(1 if options.quick else repetitions):
        for cut in cuts:
            yield {
                "repetition": repetition,
                "missing": options.missing,
                "cut": cut,
                "most": QUICK if options.quick else PARTITIONS[-1],
                "identity": METHODS["default"].identity,
            }


def measure(problem: Problem, labels: Labels, settings: Settings) -> list[Row]:
    """Overlap with the choice of one model, and NMI, by number of partitions and way to merge."""
    # The control by permutations adds little, and judging large sets takes long.
    large = len(labels) > LARGE
    chosen = partial(MergingSettings, methods=("merged", "averaged")) if large else MergingSettings
    wanted = chosen(
        partitions=tuple(p for p in PARTITIONS if p <= int(settings["most"])),
        least_rows=LEAST_ROWS,
        cut="keyed" if settings["cut"] == "keyed" else "even",
    )
    return [
        {
            "partitions": row.partitions,
            "rows": row.rows,
            "method": row.method,
            "overlap": row.overlap,
            "nmi": float(np.mean(list(row.nmi.values()))),
            **{f"nmi {judge}": value for judge, value in row.nmi.items()},
        }
        for row in measure_merging(Stream(problem, labels), wanted)
    ]


def measure_long(settings: Settings) -> list[Row]:
    """The same on the stream that is made."""
    repetition = int(settings["repetition"])
    made = long_stream(int(settings["instances"]), repetition)
    problem, labels = make_problem(made, repetition, float(settings["missing"]))
    return measure(problem, labels, settings)


EXPERIMENT = OnData("merging", plan, measure)
LONG = OnMade("merging-long", plan_long, measure_long)
