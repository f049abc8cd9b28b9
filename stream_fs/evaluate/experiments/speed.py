"""What an update costs against doing everything again: the paper's incremental speed-up.

Half of the rows first, the rest in five equal chunks. At every chunk the selector folds it in; a
method that cannot do that starts again on all rows so far, and OMVFS folds it in, too. Times are
of the processor, one thread, ranking included.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import numpy as np

from stream_fs.evaluate import baselines
from stream_fs.evaluate.data import IncompleteViews, Labels
from stream_fs.evaluate.methods import METHODS, feed, new_selector, stream
from stream_fs.evaluate.omvfs import Omvfs
from stream_fs.evaluate.plan import Entry, OnData, Options, Row, Settings
from stream_fs.evaluate.problem import Problem, chunks, even_slices
from stream_fs.selector.params import Preset

AGAIN = ("Laplacian score", "MiniBatchNMF", "variance")
INCREMENTS = 5
REPETITIONS = 2


def plan(options: Options, entry: Entry) -> list[Settings]:
    """A task per repetition."""
    repetitions = 1 if options.quick else options.repetitions_of(entry, REPETITIONS)
    identity = " ".join(METHODS[name].identity for name in ("default", "paper", "OMVFS", *AGAIN))
    return [
        {"repetition": repetition, "missing": options.missing, "identity": identity}
        for repetition in range(repetitions)
    ]


def measure(problem: Problem, _labels: Labels, _settings: Settings) -> list[Row]:
    """Seconds of every method at every increment."""
    rows: list[Row] = []
    half = problem.instances // 2
    increments = list(even_slices(half, problem.instances, INCREMENTS))
    for preset in ("default", "paper"):
        rows += _selector(problem, preset, half, increments)
    rows += _omvfs(problem, half, increments)
    for number, increment in enumerate(increments, 1):
        so_far = first_rows(problem, increment.stop)
        for name in AGAIN:
            took = seconds(partial(METHODS[name].rank, so_far))
            rows.append({"method": name, "increment": number, "seconds": took})
    return rows


def _selector(problem: Problem, preset: Preset, half: int, increments: list[slice]) -> list[Row]:
    rows: list[Row] = []
    selector = new_selector(problem, preset)
    stream(selector, problem, [slice(0, half)])
    for number, increment in enumerate(increments, 1):

        def fold(increment: slice = increment) -> None:
            feed(selector, problem, increment)
            selector.get_order()

        def again(increment: slice = increment) -> None:
            fresh = new_selector(problem, preset)
            stream(fresh, problem, chunks(increment.stop, problem.clusters))
            fresh.get_order()

        rows.append({"method": preset, "increment": number, "seconds": seconds(fold)})
        rows.append({"method": f"{preset}, again", "increment": number, "seconds": seconds(again)})
    return rows


def _omvfs(problem: Problem, half: int, increments: list[slice]) -> list[Row]:
    data = problem.data
    filled = [baselines.unit_mean_imputed(data, v) for v in range(len(data.views))]
    model = Omvfs(problem.clusters, problem.seed)
    model.fit_chunk([x[:half].astype(np.float64) for x in filled])
    rows: list[Row] = []
    for number, increment in enumerate(increments, 1):
        chunk = [x[increment].astype(np.float64) for x in filled]
        took = seconds(partial(model.fit_chunk, chunk))
        rows.append({"method": "OMVFS", "increment": number, "seconds": took})
    return rows


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
