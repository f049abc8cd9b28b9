"""The methods at different shares of missing instances."""

from __future__ import annotations

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.experiments.ranking import judged_rows
from stream_fs.evaluate.methods.registry import ALL_FEATURES, METHODS
from stream_fs.evaluate.plan import DataSetEntry, DataSetExperiment, Options, Row, Settings
from stream_fs.evaluate.protocol import SCALED_JUDGES, JudgePanel, Trial

COMPARED = ("default", "paper", "variance", ALL_FEATURES)
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5)
PUBLISHED_LEVELS = (0.1, 0.3, 0.5)
SHARE = 0.3
REPETITIONS = 2


def plan(options: Options, entry: DataSetEntry) -> list[Settings]:
    """One per repetition, share of missing instances and method."""
    levels = PUBLISHED_LEVELS if options.quick or options.masks == "published" else LEVELS
    return [
        {
            "repetition": repetition,
            "missing": level,
            "method": name,
            "identity": METHODS[name].identity,
        }
        for repetition in range(options.repetitions_on(entry, REPETITIONS))
        for level in levels
        for name in COMPARED
    ]


def measure(trial: Trial, labels: Labels, settings: Settings) -> list[Row]:
    """NMI, ARI and F with 30 % of the features by judge, with the method's own budget."""
    method = METHODS[str(settings["method"])]
    share = 1.0 if method.name == ALL_FEATURES else SHARE
    panel = JudgePanel(trial, labels, SCALED_JUDGES)
    return judged_rows(method, panel, [share], (method.own_budget,))


EXPERIMENT = DataSetExperiment(plan, measure, large=False)
