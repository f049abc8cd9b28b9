"""One stream in P partitions, a model each, merged: how near to one model of all of it.

On the data sets that leave every partition 40 rows per cluster, and on a long stream made for it,
which has enough rows for all P. A cut is even, or keyed: every class is spread unevenly over the
partitions, as a message key that has to do with it would.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from stream_fs.evaluate.data import Labels
from stream_fs.evaluate.long_stream import long_stream
from stream_fs.evaluate.merging import Cut, MergingSettings, Stream, measure_merging
from stream_fs.evaluate.methods import METHODS
from stream_fs.evaluate.plan import LARGE, Entry, OnData, OnMade, Options, Row, Settings
from stream_fs.evaluate.problem import Problem, make_problem

PARTITIONS = (2, 4, 8, 16, 32)
QUICK = 4
"""Partitions at most in a quick run."""
LEAST_ROWS = 40
"""Of a partition, per cluster."""
LONG_ROWS = 10_240
LONG_ROWS_QUICK = 1_280
REPETITIONS = 3
CUTS: tuple[Cut, ...] = ("even", "keyed")


def plan(options: Options, entry: Entry) -> list[Settings]:
    """A task per repetition and cut, where there are rows for two partitions."""
    if entry.instances < PARTITIONS[0] * LEAST_ROWS * entry.classes:
        return []
    repetitions = options.repetitions_of(entry, REPETITIONS)
    cuts = CUTS[:1] if options.quick or entry.instances > LARGE else CUTS
    return list(_settings(options, repetitions, cuts))


def plan_long(options: Options) -> list[Settings]:
    """The same on the stream that is made."""
    rows = LONG_ROWS_QUICK if options.quick else LONG_ROWS
    settings = _settings(options, min(options.repetitions, REPETITIONS), CUTS[:1])
    return [{**of, "instances": rows} for of in settings]


def _settings(options: Options, repetitions: int, cuts: tuple[Cut, ...]) -> Iterator[Settings]:
    for repetition in range(1 if options.quick else repetitions):
        for cut in cuts:
            yield {
                "repetition": repetition,
                "missing": options.missing,
                "cut": cut,
                "most": QUICK if options.quick else PARTITIONS[-1],
                "identity": METHODS["default"].identity,
            }


def measure(problem: Problem, labels: Labels, settings: Settings) -> list[Row]:
    """Overlap with the choice of one model, and NMI, by number of partitions and way to merge."""
    # The control by permutations adds little, and judging large sets takes long.
    large = len(labels) > LARGE
    chosen = partial(MergingSettings, methods=("merged", "averaged")) if large else MergingSettings
    wanted = chosen(
        partitions=tuple(p for p in PARTITIONS if p <= int(settings["most"])),
        least_rows=LEAST_ROWS,
        cut="keyed" if settings["cut"] == "keyed" else "even",
    )
    return [
        {
            "partitions": row.partitions,
            "rows": row.rows,
            "method": row.method,
            "overlap": row.overlap,
            "nmi": float(np.mean(list(row.nmi.values()))),
            **{f"nmi {judge}": value for judge, value in row.nmi.items()},
        }
        for row in measure_merging(Stream(problem, labels), wanted)
    ]


def measure_long(settings: Settings) -> list[Row]:
    """The same on the stream that is made."""
    repetition = int(settings["repetition"])
    made = long_stream(int(settings["instances"]), repetition)
    problem, labels = make_problem(made, repetition, float(settings["missing"]))
    return measure(problem, labels, settings)


EXPERIMENT = OnData("merging", plan, measure)
LONG = OnMade("merging-long", plan_long, measure_long)
