"""Planning and measuring of single experiments on a small data set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from stream_fs.evaluate.datasets import DataSet
from stream_fs.evaluate.experiments import load_experiment
from stream_fs.evaluate.plan import DataSetEntry, Options, Row, Settings, SyntheticExperiment
from stream_fs.evaluate.protocol import make_trial
from tests.support.planted_views import planted_views

ENTRY = DataSetEntry("planted", "development", 400, (24, 24, 24), 4, "abc")
TINY = Options(repetitions=1, shares=(0.5,), quick=True)


@cache
def planted_dataset() -> DataSet:
    data, labels = planted_views(size=30, missing=0)
    return DataSet("planted", data.views, labels)


def plan_settings(name: str, options: Options, entry: DataSetEntry = ENTRY) -> Sequence[Settings]:
    experiment = load_experiment(name)
    if isinstance(experiment, SyntheticExperiment):
        return experiment.settings(options)
    return experiment.plan(options, entry)


def planned(name: str, **wanted: object) -> Settings:
    """The first settings of a tiny plan with these values."""
    for settings in plan_settings(name, TINY):
        if all(settings[key] == value for key, value in wanted.items()):
            return settings
    raise AssertionError(f"{name} plans nothing with {wanted}")


def measured(name: str, settings: Settings) -> list[Row]:
    """The rows of an experiment, on the planted data set or on data of its own."""
    experiment = load_experiment(name)
    if isinstance(experiment, SyntheticExperiment):
        return experiment.measure(settings)
    repetition, missing = int(settings["repetition"]), float(settings["missing"])
    return experiment.measure(*make_trial(planted_dataset(), repetition, missing), settings)
