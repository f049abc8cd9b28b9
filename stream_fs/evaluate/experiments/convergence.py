"""Convergence: the objective after every iteration within a chunk."""

from __future__ import annotations

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.methods.registry import METHODS, feed_chunk, new_selector
from stream_fs.evaluate.plan import DataSetEntry, DataSetExperiment, Options, Row, Settings
from stream_fs.evaluate.protocol import Trial, chunks
from stream_fs.selector.parameters import Preset

ITERATIONS = 50
PRESETS: tuple[Preset, ...] = ("default", "paper")


def plan(options: Options, _entry: DataSetEntry) -> list[Settings]:
    """One per preset."""
    return [
        {
            "repetition": 0,
            "missing": options.missing,
            "preset": preset,
            "identity": METHODS[preset].identity,
        }
        for preset in PRESETS
    ]


def measure(trial: Trial, _labels: Labels, settings: Settings) -> list[Row]:
    """The objective after every iteration, for the first chunk and the last."""
    preset: Preset = "paper" if settings["preset"] == "paper" else "default"
    selector = new_selector(
        trial, preset, tolerance=0.0, min_iterations=ITERATIONS, max_iterations=ITERATIONS
    )
    objectives: list[tuple[float, ...]] = []
    for rows in chunks(trial.instances, trial.clusters):
        feed_chunk(selector, trial, rows)
        selector.flush()
        objectives.append(selector.last_report.objective)
    return [
        {"chunk": name, "iteration": iteration, "objective": objective}
        for name, by_iteration in (("first", objectives[0]), ("last", objectives[-1]))
        for iteration, objective in enumerate(by_iteration, 1)
    ]


EXPERIMENT = DataSetExperiment(plan, measure, large=False)
