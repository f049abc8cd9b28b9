"""How much the parameters of preset `default` matter: one at a time over the paper's grid."""

from __future__ import annotations

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.experiments.grid import GRID, settings_of, varied
from stream_fs.evaluate.experiments.ranking import judged_rows
from stream_fs.evaluate.plan import Entry, OnData, Options, Row, Settings
from stream_fs.evaluate.protocol import Bench, Problem

MIDDLE: dict[str, float] = {"beta": 1.0, "eta": 0.01, "theta": 0.1, "lam": 3.0}
LOOKS = ("gimc scaled", "spectral scaled")
SHARE = 0.3
REPETITIONS = 2


def plan(options: Options, entry: Entry) -> list[Settings]:
    """A task per repetition and setting; large data sets are left out."""
    grid = {"beta": GRID["beta"]} if options.quick else GRID
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "parameter": parameter,
            "value": value,
            "identity": varied("default", MIDDLE, parameter, value).identity,
        }
        for repetition in range(1 if options.quick else options.repetitions_of(entry, REPETITIONS))
        for parameter, value in settings_of(MIDDLE, grid)
    ]


def measure(problem: Problem, labels: Labels, settings: Settings) -> list[Row]:
    """NMI, ARI and F of 30 % of the features, with both judges on scaled features."""
    method = varied("default", MIDDLE, str(settings["parameter"]), float(settings["value"]))
    return judged_rows(method, Bench(problem, labels, LOOKS), [SHARE], (method.own_budget,))


EXPERIMENT = OnData("sensitivity", plan, measure, large=False)
