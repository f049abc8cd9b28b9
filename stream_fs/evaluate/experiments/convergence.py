"""How the objective falls within a chunk, iteration by iteration."""

from __future__ import annotations

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.methods.registry import METHODS, feed, new_selector
from stream_fs.evaluate.plan import Entry, OnData, Options, Row, Settings
from stream_fs.evaluate.protocol import Problem, chunks
from stream_fs.selector.parameters import Preset

ITERATIONS = 50
PRESETS: tuple[Preset, ...] = ("default", "paper")


def plan(options: Options, _entry: Entry) -> list[Settings]:
    """A task per preset."""
    return [
        {
            "repetition": 0,
            "missing": options.missing,
            "preset": preset,
            "identity": METHODS[preset].identity,
        }
        for preset in PRESETS
    ]


def measure(problem: Problem, _labels: Labels, settings: Settings) -> list[Row]:
    """The chunk's objective after every iteration, for the first chunk and the last."""
    preset: Preset = "paper" if settings["preset"] == "paper" else "default"
    selector = new_selector(
        problem, preset, tolerance=0.0, min_iterations=ITERATIONS, max_iterations=ITERATIONS
    )
    curves: list[tuple[float, ...]] = []
    for rows in chunks(problem.instances, problem.clusters):
        feed(selector, problem, rows)
        selector.flush()
        curves.append(selector.last_report.objective)
    return [
        {"chunk": name, "iteration": iteration, "objective": objective}
        for name, curve in (("first", curves[0]), ("last", curves[-1]))
        for iteration, objective in enumerate(curve, 1)
    ]


EXPERIMENT = OnData("convergence", plan, measure, large=False)
