"""Drift: chunks until the new informative features rank first, by decay.

Two views of 30 features and four groups; 60 chunks of 100 rows, a third of every view's instances
missing. Features 0–7 separate the groups in the first half of the stream, features 8–15 in the
second half; all others are noise. Without drift, features 0–7 are informative throughout.
"""

from __future__ import annotations

import numpy as np

from stream_fs.evaluate.datasets import IncompleteViews
from stream_fs.evaluate.methods.registry import feed_chunk, new_selector, selector_method
from stream_fs.evaluate.plan import Options, Row, Settings, SyntheticExperiment
from stream_fs.evaluate.protocol import Trial, remove_views

GROUPS = 4
FEATURES = 30
INFORMATIVE = 8
SHIFT = 0.35
"""Added to an informative feature in its group."""
CHUNK = 100
CHUNKS = 60
DECAYS = (1.0, 0.95, 0.9, 0.8, 0.7)
QUICK_DECAYS = (1.0, 0.8)
REPETITIONS = 5


def plan(options: Options) -> list[Settings]:
    """One per repetition and decay, with drift and without."""
    return [
        {
            "repetition": repetition,
            "decay": decay,
            "drift": drift,
            "chunks": CHUNKS,
            "identity": selector_method("default", "default", decay=decay).identity,
        }
        for repetition in range(options.repetitions_up_to(REPETITIONS))
        for decay in (QUICK_DECAYS if options.quick else DECAYS)
        for drift in ("yes", "no")
    ]


def measure(settings: Settings) -> list[Row]:
    """After every chunk, the shares of old and of new features among the first eight."""
    count = int(settings["chunks"])
    drift = settings["drift"] == "yes"
    trial = make_stream(int(settings["repetition"]), count, drift=drift)
    selector = new_selector(trial, "default", decay=float(settings["decay"]))
    rows: list[Row] = []
    for chunk in range(count):
        feed_chunk(selector, trial, slice(chunk * CHUNK, (chunk + 1) * CHUNK))
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


def make_stream(seed: int, count: int, *, drift: bool) -> Trial:
    """A stream of `count` chunks."""
    generator = np.random.default_rng(seed)
    n = count * CHUNK
    labels = generator.integers(GROUPS, size=n)
    late = np.arange(n) >= n // 2 if drift else np.zeros(n, dtype=bool)
    views = []
    for _ in range(2):
        x = generator.random((n, FEATURES))
        for feature in range(INFORMATIVE):
            in_group = labels == feature % GROUPS
            x[in_group & ~late, feature] += SHIFT
            x[in_group & late, feature + INFORMATIVE] += SHIFT
        # All features have the same range from the start, so that ranges do not reveal the drift.
        x[0], x[1] = 0.0, 1.0 + SHIFT
        views.append(x)
    present = remove_views(n, 2, 1 / 3, generator)
    return Trial(IncompleteViews(tuple(views), present), GROUPS, seed)


def chunks_until_lead(rows: list[Row]) -> float:
    """Chunks from the change until the new features hold more of the first ranks, permanently.

    Infinite if they never do.
    """
    ordered = sorted(rows, key=lambda row: row["chunk"])
    change = len(ordered) // 2
    behind = [int(row["chunk"]) for row in ordered if float(row["new"]) <= float(row["old"])]
    last_behind = max([change, *behind])
    return float("inf") if last_behind == len(ordered) else float(last_behind + 1 - change)


EXPERIMENT = SyntheticExperiment(plan, measure)
