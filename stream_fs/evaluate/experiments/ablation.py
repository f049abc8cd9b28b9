"""Ablation of preset `default`: one parameter is changed at a time.

`first_rows` and `absent_view` are not among them, because they have no effect on the protocol's
streams: the first chunk has 20 rows per cluster (`protocol.chunks`), and every chunk has rows of
every view. Decay is included for its cost where nothing drifts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.experiments.ranking import judged_rows
from stream_fs.evaluate.methods.registry import selector_method
from stream_fs.evaluate.plan import DataSetEntry, DataSetExperiment, Options, Row, Settings
from stream_fs.evaluate.protocol import SCALED_JUDGES, JudgePanel, Trial

UNCHANGED = "as it is"
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    UNCHANGED: {},
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
QUICK_VARIANTS = (UNCHANGED, "start at random", "no redundancy", "decay 0.9")
SHARES = (0.1, 0.3)
REPETITIONS = 2


def plan(options: Options, entry: DataSetEntry) -> list[Settings]:
    """One per repetition and variant."""
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "variant": variant,
            "identity": selector_method(variant, "default", **VARIANTS[variant]).identity,
            "shares": " ".join(f"{share:g}" for share in SHARES),
        }
        for repetition in range(options.repetitions_on(entry, REPETITIONS))
        for variant in (QUICK_VARIANTS if options.quick else VARIANTS)
    ]


def measure(trial: Trial, labels: Labels, settings: Settings) -> list[Row]:
    """NMI, ARI and F by share and judge, with the variant's own budget."""
    variant = str(settings["variant"])
    method = selector_method(variant, "default", **VARIANTS[variant])
    shares = [float(share) for share in str(settings["shares"]).split()]
    panel = JudgePanel(trial, labels, SCALED_JUDGES)
    return judged_rows(method, panel, shares, (method.own_budget,))


EXPERIMENT = DataSetExperiment(plan, measure, large=False)
