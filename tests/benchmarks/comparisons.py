"""Comparisons of one update with its products, its rivals and the ranking."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from stream_fs.selector import rank, update
from stream_fs.selector.ranking import LEAST_DEPTH
from tests.benchmarks import rivals
from tests.benchmarks.measure import Comparison, Goal, Run, take_turns
from tests.benchmarks.workload import Shape, stream, warm_model


@dataclass(frozen=True)
class Case:
    """A shape and how often to measure it; `goal` is a bound of its main ratio."""

    shape: Shape
    turns: int
    goal: Goal | None = None


def against_kernels(case: Case) -> Iterator[Comparison]:
    """The update against its mandatory products, and against scikit-learn."""
    shape = case.shape
    state, chunk = warm_model(shape)
    _, report = update(state, chunk)
    iterations = report.iterations
    sketch = state.params.sketch
    present, every = rivals.present_rows(chunk), rivals.all_rows(chunk)
    runs: dict[str, Run] = {
        "update": partial(update, state, chunk),
        "kernels": rivals.kernels(present, shape.clusters, sketch, iterations),
        "kernels of all rows": rivals.kernels(every, shape.clusters, sketch, iterations),
        "MiniBatchNMF": rivals.mini_batch_nmf(chunk, shape.clusters, iterations, 1),
        "partial_fit": rivals.mini_batch_nmf(chunk, shape.clusters, 1, iterations),
    }
    runs["kernels"]()  # the other runs have been warmed up above
    taken = take_turns(runs, case.turns)
    where = f"{shape}, {iterations} iterations"
    rows = [
        ("mandatory kernels", "kernels"),
        ("kernels, missing rows built", "kernels of all rows"),
        ("MiniBatchNMF, as many passes", "MiniBatchNMF"),
        ("MiniBatchNMF, one partial_fit", "partial_fit"),
    ]
    for label, name in rows:
        if name == "kernels":
            yield Comparison(
                "kernels", label, where, "update", name, taken["update"], taken[name], case.goal
            )
        else:
            yield Comparison("rivals", label, where, name, "update", taken[name], taken["update"])


def against_reference(case: Case) -> Iterator[Comparison]:
    """The update against the same rules with every missing row built."""
    state, chunk = warm_model(case.shape)
    taken = take_turns(
        {
            "update": partial(update, state, chunk),
            "reference": rivals.explicit_imputation(state, chunk),
        },
        case.turns,
    )
    yield Comparison(
        "rivals",
        "reference with explicit imputation",
        str(case.shape),
        "reference",
        "update",
        taken["reference"],
        taken["update"],
        case.goal,
    )


def against_scratch(case: Case, chunks: int) -> Iterator[Comparison]:
    """One update at a chunk far down the stream against recomputing from all rows so far."""
    shape = case.shape
    state, chunk = warm_model(shape, chunks - 1)
    seen = list(islice(stream(shape), chunks))
    taken = take_turns(
        {
            "update": partial(update, state, chunk),
            "scratch": rivals.from_scratch(state, seen),
        },
        case.turns,
    )
    yield Comparison(
        "recomputing",
        f"all rows anew at chunk {chunks}",
        str(shape),
        "scratch",
        "update",
        taken["scratch"],
        taken["update"],
        case.goal,
    )


def ranking(case: Case) -> Iterator[Comparison]:
    """Scores and ranking, to the depth that is published and to half of all features."""
    shape = case.shape
    state, chunk = warm_model(shape)
    depths: Sequence[tuple[str, int, Goal | None]] = [
        (f"scores and ranking to {LEAST_DEPTH}", LEAST_DEPTH, case.goal),
        ("scores and ranking to d/2", shape.dimension // 2, None),
    ]
    runs: dict[str, Run] = {"update": partial(update, state, chunk)}
    for label, depth, _ in depths:
        runs[label] = partial(rank, state, dict.fromkeys(state.views, depth))
    taken = take_turns(runs, case.turns)
    for label, _, goal in depths:
        yield Comparison(
            "ranking", label, str(shape), "ranking", "update", taken[label], taken["update"], goal
        )
