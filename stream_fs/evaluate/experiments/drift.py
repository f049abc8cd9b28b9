"""A stream whose informative features change half way, and how long until the new ones lead.

Two views of 30 features and four groups; 60 chunks of 100 rows, a third of every view's instances
missing. In the first half features 0–7 tell the groups apart, in the second half features 8–15;
the rest is noise throughout. Without drift the stream is the same but for the change.
"""

from __future__ import annotations

import numpy as np

from stream_fs.evaluate.datasets import IncompleteViews
from stream_fs.evaluate.methods.registry import feed, new_selector, selector_method
from stream_fs.evaluate.plan import OnMade, Options, Row, Settings
from stream_fs.evaluate.protocol import Problem, remove_views

GROUPS = 4
FEATURES = 30
INFORMATIVE = 8
RAISED = 0.35
CHUNK = 100
CHUNKS = 60
DECAYS = (1.0, 0.95, 0.9, 0.8, 0.7)
QUICK_DECAYS = (1.0, 0.8)
REPETITIONS = 5


def plan(options: Options) -> list[Settings]:
    """A task per repetition and decay, with drift and without."""
    return [
        {
            "repetition": repetition,
            "decay": decay,
            "drift": drift,
            "chunks": CHUNKS,
            "identity": selector_method("default", "default", decay=decay).identity,
        }
        for repetition in range(1 if options.quick else min(options.repetitions, REPETITIONS))
        for decay in (QUICK_DECAYS if options.quick else DECAYS)
        for drift in ("yes", "no")
    ]


def measure(settings: Settings) -> list[Row]:
    """After every chunk: share of the old and of the new features among the first eight."""
    count = int(settings["chunks"])
    drift = settings["drift"] == "yes"
    problem = make_stream(int(settings["repetition"]), count, drift=drift)
    selector = new_selector(problem, "default", decay=float(settings["decay"]))
    rows: list[Row] = []
    for chunk in range(count):
        feed(selector, problem, slice(chunk * CHUNK, (chunk + 1) * CHUNK))
        orders = [order[:INFORMATIVE] for order in selector.get_order().values()]
        first = np.array(orders)
        rows.append(
            {
                "chunk": chunk + 1,
                "old": float((first < INFORMATIVE).mean()),
                "new": float(((first >= INFORMATIVE) & (first < 2 * INFORMATIVE)).mean()),
            }
        )
    return rows


def make_stream(seed: int, count: int, *, drift: bool) -> Problem:
    """All rows of the stream, in order."""
    generator = np.random.default_rng(seed)
    n = count * CHUNK
    labels = generator.integers(GROUPS, size=n)
    late = np.arange(n) >= n // 2 if drift else np.zeros(n, dtype=bool)
    views = []
    for _ in range(2):
        x = generator.random((n, FEATURES))
        for feature in range(INFORMATIVE):
            raised = labels == feature % GROUPS
            x[raised & ~late, feature] += RAISED
            x[raised & late, feature + INFORMATIVE] += RAISED
        # The range of a feature does not tell when it began to matter.
        x[0], x[1] = 0.0, 1.0 + RAISED
        views.append(x)
    present = remove_views(n, 2, 1 / 3, generator)
    return Problem(IncompleteViews(tuple(views), present), GROUPS, seed)


def chunks_until_lead(rows: list[Row]) -> float:
    """Chunks after the change until the new features have more of the first places, for good.

    Infinite where they never do.
    """
    ordered = sorted(rows, key=lambda row: row["chunk"])
    change = len(ordered) // 2
    behind = [int(row["chunk"]) for row in ordered if float(row["new"]) <= float(row["old"])]
    last_behind = max([change, *behind])
    return float("inf") if last_behind == len(ordered) else float(last_behind + 1 - change)


EXPERIMENT = OnMade("drift", plan, measure)
