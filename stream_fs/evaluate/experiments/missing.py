"""How the methods bear it when more views are missing."""

from __future__ import annotations

from stream_fs.evaluate.data import DataSet, Mask
from stream_fs.evaluate.experiments.ranking import judged_rows
from stream_fs.evaluate.methods import ALL, METHODS
from stream_fs.evaluate.plan import LARGE, Entry, Experiment, Options, Row, Settings
from stream_fs.evaluate.problem import Bench, make_problem

COMPARED = ("default", "paper", "variance", ALL)
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5)
PUBLISHED_LEVELS = (0.1, 0.3, 0.5)
SHARE = 0.3
LOOKS = ("gimc scaled", "spectral scaled")
REPETITIONS = 2


def plan(options: Options, entry: Entry | None) -> list[Settings]:
    """A task per repetition, share of missing instances and method; not for large data sets."""
    assert entry is not None, "this experiment needs data"
    if entry.instances > LARGE:
        return []
    levels = PUBLISHED_LEVELS if options.quick or options.masks == "published" else LEVELS
    return [
        {
            "repetition": repetition,
            "missing": level,
            "method": name,
            "identity": METHODS[name].identity,
        }
        for repetition in range(1 if options.quick else options.repetitions_of(entry, REPETITIONS))
        for level in levels
        for name in COMPARED
    ]


def measure(dataset: DataSet | None, settings: Settings, published: Mask | None) -> list[Row]:
    """NMI, ARI and F of 30 % of the features by judge, with the method's own budget."""
    assert dataset is not None, "this experiment needs data"
    problem, labels = make_problem(
        dataset, int(settings["repetition"]), float(settings["missing"]), published
    )
    method = METHODS[str(settings["method"])]
    share = 1.0 if method.name == ALL else SHARE
    return judged_rows(method, Bench(problem, labels, LOOKS), [share], (method.own_budget,))


EXPERIMENT = Experiment("missing", plan, measure)
