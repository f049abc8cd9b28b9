"""The paper's own protocol: preset `paper` over its grid, judged by GIMC_FLSD as in the paper.

The full grid has 1,250 settings; here one parameter at a time differs from the middle (β = η = θ =
1, λ = 6). The labels choose the best setting: these figures are reported apart from all others.
"""

from __future__ import annotations

from typing import Any

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.experiments.ranking import judged_rows
from stream_fs.evaluate.methods.registry import Method, selector_method
from stream_fs.evaluate.plan import DataSetEntry, DataSetExperiment, Options, Row, Settings
from stream_fs.evaluate.protocol import JudgePanel, Trial
from stream_fs.selector.parameters import Preset

WEIGHTS = (0.01, 0.1, 1.0, 10.0, 100.0)
SMOOTHNESS = tuple(float(value) for value in range(2, 12))
MIDDLE: dict[str, float] = {"beta": 1.0, "eta": 1.0, "theta": 1.0, "lam": 6.0}
GRID: dict[str, tuple[float, ...]] = {
    "beta": WEIGHTS,
    "eta": WEIGHTS,
    "theta": WEIGHTS,
    "lam": SMOOTHNESS,
}
JUDGE = "gimc scaled"
REPETITIONS = 3


def parameter_settings(
    middle: dict[str, float], grid: dict[str, tuple[float, ...]]
) -> list[tuple[str, float]]:
    """The middle, then every other value of every parameter in turn."""
    pairs = [(name, value) for name, values in grid.items() for value in values]
    return [("middle", 0.0), *(pair for pair in pairs if pair[1] != middle[pair[0]])]


def varied_method(preset: Preset, middle: dict[str, float], parameter: str, value: float) -> Method:
    """The preset in the middle of the grid, or with one parameter changed."""
    values: dict[str, Any] = dict(middle)
    if parameter != "middle":
        values[parameter] = value
    return selector_method(preset, preset, **values)


def plan(options: Options, entry: DataSetEntry) -> list[Settings]:
    """One per repetition and parameter value, on the data sets of the user's directory."""
    if entry.role == "held-out" and not options.quick:
        return []
    grid = {"lam": GRID["lam"][::3]} if options.quick else GRID
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "parameter": parameter,
            "value": value,
            "identity": varied_method("paper", MIDDLE, parameter, value).identity,
            "shares": " ".join(f"{share:g}" for share in options.shares),
        }
        for repetition in range(options.repetitions_on(entry, REPETITIONS))
        for parameter, value in parameter_settings(MIDDLE, grid)
    ]


def measure(trial: Trial, labels: Labels, settings: Settings) -> list[Row]:
    """NMI, ARI and F by share, by GIMC_FLSD on scaled features."""
    parameter, value = str(settings["parameter"]), float(settings["value"])
    method = varied_method("paper", MIDDLE, parameter, value)
    shares = [float(share) for share in str(settings["shares"]).split()]
    panel = JudgePanel(trial, labels, (JUDGE,))
    return judged_rows(method, panel, shares, (method.own_budget,))


EXPERIMENT = DataSetExperiment(plan, measure)
