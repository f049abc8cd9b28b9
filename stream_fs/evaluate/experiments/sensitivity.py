"""Sensitivity of preset `default` to its parameters: one at a time over the paper's grid."""

from __future__ import annotations

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.experiments.grid import GRID, parameter_settings, varied_method
from stream_fs.evaluate.experiments.ranking import judged_rows
from stream_fs.evaluate.plan import DataSetEntry, DataSetExperiment, Options, Row, Settings
from stream_fs.evaluate.protocol import SCALED_JUDGES, JudgePanel, Trial

MIDDLE: dict[str, float] = {"beta": 1.0, "eta": 0.01, "theta": 0.1, "lam": 3.0}
SHARE = 0.3
REPETITIONS = 2


def plan(options: Options, entry: DataSetEntry) -> list[Settings]:
    """One per repetition and parameter value."""
    grid = {"beta": GRID["beta"]} if options.quick else GRID
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "parameter": parameter,
            "value": value,
            "identity": varied_method("default", MIDDLE, parameter, value).identity,
        }
        for repetition in range(options.repetitions_on(entry, REPETITIONS))
        for parameter, value in parameter_settings(MIDDLE, grid)
    ]


def measure(trial: Trial, labels: Labels, settings: Settings) -> list[Row]:
    """NMI, ARI and F with 30 % of the features, by both judges on scaled features."""
    parameter, value = str(settings["parameter"]), float(settings["value"])
    method = varied_method("default", MIDDLE, parameter, value)
    panel = JudgePanel(trial, labels, SCALED_JUDGES)
    return judged_rows(method, panel, [SHARE], (method.own_budget,))


EXPERIMENT = DataSetExperiment(plan, measure, large=False)
