"""The paper's incremental speed-up: the time of an update, and of a computation from the start.

Half of the rows come first, the others in five equal chunks. After every chunk, a streaming method
updates its state; a method that does not stream, and a selector that starts again, process all rows
so far. Times are processor times of one thread, and include the ranking.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.methods.omvfs import Omvfs, imputed_views
from stream_fs.evaluate.methods.registry import METHODS, feed_chunk, feed_chunks, new_selector
from stream_fs.evaluate.plan import DataSetEntry, DataSetExperiment, Options, Row, Settings
from stream_fs.evaluate.protocol import Trial, chunks, even_slices
from stream_fs.selector.parameters import Preset

BATCH = ("Laplacian score", "MiniBatchNMF", "variance")
"""Methods that do not stream."""
SELECTORS: Mapping[str, Preset] = {"default": "default", "paper": "paper"}
RESTARTED: Mapping[str, Preset] = {f"{name}, again": preset for name, preset in SELECTORS.items()}
"""The selectors, started again from the first row."""
COMPARED = (*SELECTORS, *RESTARTED, "OMVFS", *BATCH)
INCREMENTS = 5
REPETITIONS = 2


def plan(options: Options, entry: DataSetEntry) -> list[Settings]:
    """One per repetition and method."""
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "method": name,
            "identity": METHODS[RESTARTED.get(name, name)].identity,
        }
        for repetition in range(options.repetitions_on(entry, REPETITIONS))
        for name in COMPARED
    ]


def measure(trial: Trial, _labels: Labels, settings: Settings) -> list[Row]:
    """Seconds of a method for every increment."""
    half = trial.instances // 2
    increments = list(even_slices(half, trial.instances, INCREMENTS))
    name = str(settings["method"])
    if name in SELECTORS:
        times = _time_updates(trial, SELECTORS[name], half, increments)
    elif name == "OMVFS":
        times = _time_omvfs(trial, half, increments)
    else:
        times = _time_restarts(trial, name, increments)
    return [{"increment": number, "seconds": seconds} for number, seconds in enumerate(times, 1)]


def _time_updates(
    trial: Trial, preset: Preset, half: int, increments: Sequence[slice]
) -> Iterator[float]:
    selector = new_selector(trial, preset)
    feed_chunks(selector, trial, [slice(0, half)])

    def update(increment: slice) -> None:
        feed_chunk(selector, trial, increment)
        selector.get_order()

    for increment in increments:
        yield processor_seconds(partial(update, increment))


def _time_restarts(trial: Trial, name: str, increments: Sequence[slice]) -> Iterator[float]:
    def restart(increment: slice) -> None:
        if name in RESTARTED:
            selector = new_selector(trial, RESTARTED[name])
            feed_chunks(selector, trial, chunks(increment.stop, trial.clusters))
            selector.get_order()
        else:
            METHODS[name].rank(trial.first_rows(increment.stop))

    for increment in increments:
        yield processor_seconds(partial(restart, increment))


def _time_omvfs(trial: Trial, half: int, increments: Sequence[slice]) -> Iterator[float]:
    views = imputed_views(trial)
    model = Omvfs(trial.clusters, trial.seed)
    model.fit_chunk([x[:half] for x in views])
    for increment in increments:
        yield processor_seconds(partial(model.fit_chunk, [x[increment] for x in views]))


def processor_seconds(work: Callable[[], object]) -> float:
    """Processor time of a call, which other processes on the machine hardly change."""
    start = time.process_time()
    work()
    return max(time.process_time() - start, 1e-6)


EXPERIMENT = DataSetExperiment(plan, measure)
