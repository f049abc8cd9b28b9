"""How the methods bear it when more views are missing."""

from __future__ import annotations

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.experiments.ranking import judged_rows
from stream_fs.evaluate.methods.registry import ALL, METHODS
from stream_fs.evaluate.plan import Entry, OnData, Options, Row, Settings
from stream_fs.evaluate.protocol import Bench, Problem

COMPARED = ("default", "paper", "variance", ALL)
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5)
PUBLISHED_LEVELS = (0.1, 0.3, 0.5)
SHARE = 0.3
LOOKS = ("gimc scaled", "spectral scaled")
REPETITIONS = 2


def plan(options: Options, entry: Entry) -> list[Settings]:
    """A task per repetition, share of missing instances and method; not for large data sets."""
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


def measure(problem: Problem, labels: Labels, settings: Settings) -> list[Row]:
    """NMI, ARI and F of 30 % of the features by judge, with the method's own budget."""
    method = METHODS[str(settings["method"])]
    share = 1.0 if method.name == ALL else SHARE
    return judged_rows(method, Bench(problem, labels, LOOKS), [share], (method.own_budget,))


EXPERIMENT = OnData("missing", plan, measure, large=False)
