"""What every deviation of preset `default` is worth: one named parameter switched at a time.

`first_rows` and `absent_view` are not among them, as no stream of the protocol would show them: its
first chunk has 20 rows per cluster (`problem.chunks`), and every chunk has rows of every view.
Decay belongs here, too: what it costs where nothing drifts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.experiments.ranking import judged_rows
from stream_fs.evaluate.methods.registry import selector_method
from stream_fs.evaluate.plan import Entry, OnData, Options, Row, Settings
from stream_fs.evaluate.protocol import Bench, Problem

AS_IT_IS = "as it is"
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    AS_IT_IS: {},
    "start at random": {"start": "random"},
    "row norms, no redundancy": {"score": "row_norm", "sketch": 0},
    "no redundancy": {"sketch": 0},
    "proportional budget": {"budget": "proportional"},
    "no reassignment": {"reassignments": 0},
    "no graph": {"theta": 0.0},
    "no energy scaling": {"energy_scaling": False},
    "equal view weights": {"view_weights": "uniform"},
    "missing rows weigh nothing": {"weights": "binary"},
    "V and U twice per iteration": {"inner_updates": 2},
    "accumulated loss": {"loss": "accumulated"},
    "unit rows": {"transform": "unit"},
    "min-max for counts, too": {"transform": "minmax"},
    "decay 0.95": {"decay": 0.95},
    "decay 0.9": {"decay": 0.9},
    "decay 0.8": {"decay": 0.8},
}
QUICK_VARIANTS = (AS_IT_IS, "start at random", "no redundancy", "decay 0.9")
SHARES = (0.1, 0.3)
LOOKS = ("gimc scaled", "spectral scaled")
REPETITIONS = 2


def plan(options: Options, entry: Entry) -> list[Settings]:
    """A task per repetition and variant; large data sets are left out."""
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "variant": variant,
            "identity": selector_method(variant, "default", **VARIANTS[variant]).identity,
            "shares": " ".join(f"{share:g}" for share in SHARES),
        }
        for repetition in range(1 if options.quick else options.repetitions_of(entry, REPETITIONS))
        for variant in (QUICK_VARIANTS if options.quick else VARIANTS)
    ]


def measure(problem: Problem, labels: Labels, settings: Settings) -> list[Row]:
    """NMI, ARI and F by share and judge, with the variant's own budget."""
    variant = str(settings["variant"])
    method = selector_method(variant, "default", **VARIANTS[variant])
    shares = [float(share) for share in str(settings["shares"]).split()]
    return judged_rows(method, Bench(problem, labels, LOOKS), shares, (method.own_budget,))


EXPERIMENT = OnData("ablation", plan, measure, large=False)
