"""What merging costs: one stream in P partitions, a model each, against one model of all of it.

Compared are, always with the redundancy order of the merged sketch:

    single    one model over all rows
    again     one model over the same rows in another order: how far two rankings that are as
              good as each other agree, and so what an overlap can be expected to reach
    merged    `merge` of the partitions' models: what the service publishes
    matched   the same with one permutation per model (Hungarian assignment to the merged means)
    averaged  the models' relevances averaged, weighted by their rows: needs no common clusters
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from stream_fs.evaluate.data import Labels, Mask
from stream_fs.evaluate.merging_rivals import averaged, matched
from stream_fs.evaluate.methods import declared_views
from stream_fs.evaluate.problem import Bench, Problem
from stream_fs.selector import Params, State, initial_state, params, read_chunk, update
from stream_fs.selector.merge import merge
from stream_fs.selector.model import counts, view_orders, view_scores

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
