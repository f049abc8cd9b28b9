"""What an update costs against doing everything again: the paper's incremental speed-up.

Half of the rows first, the rest in five equal chunks. At every chunk the selector folds it in; a
method that cannot do that starts again on all rows so far, and OMVFS folds it in, too. Times are
of the processor, one thread, ranking included.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import partial

import numpy as np

from stream_fs.evaluate.datasets import IncompleteViews, Labels
from stream_fs.evaluate.methods import baselines
from stream_fs.evaluate.methods.omvfs import Omvfs
from stream_fs.evaluate.methods.registry import METHODS, feed, new_selector, stream
from stream_fs.evaluate.plan import Entry, OnData, Options, Row, Settings
from stream_fs.evaluate.protocol import Problem, chunks, even_slices
from stream_fs.selector.parameters import Preset

AGAIN = ("Laplacian score", "MiniBatchNMF", "variance")
SELECTORS: Mapping[str, Preset] = {"default": "default", "paper": "paper"}
FRESH: Mapping[str, Preset] = {f"{name}, again": preset for name, preset in SELECTORS.items()}
"""The selectors started again from the first row."""
COMPARED = (*SELECTORS, *FRESH, "OMVFS", *AGAIN)
INCREMENTS = 5
REPETITIONS = 2


def plan(options: Options, entry: Entry) -> list[Settings]:
    """A task per repetition and method."""
    repetitions = 1 if options.quick else options.repetitions_of(entry, REPETITIONS)
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "method": name,
            "identity": METHODS[FRESH.get(name, name)].identity,
        }
        for repetition in range(repetitions)
        for name in COMPARED
    ]


def measure(problem: Problem, _labels: Labels, settings: Settings) -> list[Row]:
    """Seconds of a method at every increment."""
    half = problem.instances // 2
    increments = list(even_slices(half, problem.instances, INCREMENTS))
    name = str(settings["method"])
    if name in SELECTORS:
        took = _folding(problem, SELECTORS[name], half, increments)
    elif name == "OMVFS":
        took = _omvfs(problem, half, increments)
    else:
        took = _again(problem, name, increments)
    return [{"increment": number, "seconds": spent} for number, spent in enumerate(took, 1)]


def _folding(
    problem: Problem, preset: Preset, half: int, increments: list[slice]
) -> Iterator[float]:
    selector = new_selector(problem, preset)
    stream(selector, problem, [slice(0, half)])

    def fold(increment: slice) -> None:
        feed(selector, problem, increment)
        selector.get_order()

    for increment in increments:
        yield seconds(partial(fold, increment))


def _again(problem: Problem, name: str, increments: list[slice]) -> Iterator[float]:
    """A selector from its first row, or a method that does not stream, on all rows so far."""

    def again(increment: slice) -> None:
        if name in FRESH:
            fresh = new_selector(problem, FRESH[name])
            stream(fresh, problem, chunks(increment.stop, problem.clusters))
            fresh.get_order()
        else:
            METHODS[name].rank(first_rows(problem, increment.stop))

    for increment in increments:
        yield seconds(partial(again, increment))


def _omvfs(problem: Problem, half: int, increments: list[slice]) -> Iterator[float]:
    data = problem.data
    filled = [baselines.unit_mean_imputed(data, v) for v in range(len(data.views))]
    model = Omvfs(problem.clusters, problem.seed)
    model.fit_chunk([x[:half].astype(np.float64) for x in filled])
    for increment in increments:
        chunk = [x[increment].astype(np.float64) for x in filled]
        yield seconds(partial(model.fit_chunk, chunk))


def first_rows(problem: Problem, stop: int) -> Problem:
    """The problem as it was when only so many rows had arrived."""
    data = problem.data
    views = tuple(x[:stop] for x in data.views)
    return replace(problem, data=IncompleteViews(views, data.present[:stop]))


def seconds(work: Callable[[], object]) -> float:
    """Processor time, which other processes on the machine hardly change."""
    start = time.process_time()
    work()
    return max(time.process_time() - start, 1e-6)


EXPERIMENT = OnData("speed", plan, measure)
