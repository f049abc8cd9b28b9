"""Sensitivity of the judge GIMC_FLSD to its settings: one is changed at a time."""

from __future__ import annotations

from dataclasses import replace

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.graphs import NEIGHBOURS, unit_rows, view_graphs
from stream_fs.evaluate.judges import GimcSettings, agreement, fit_gimc
from stream_fs.evaluate.methods.registry import ALL_FEATURES, METHODS, select
from stream_fs.evaluate.plan import DataSetEntry, DataSetExperiment, Options, Row, Settings
from stream_fs.evaluate.protocol import Trial
from stream_fs.evaluate.sklearn_adapter import k_means

CHANGES: dict[str, tuple[float, ...]] = {
    "λ₁": (0.01, 1.0, 100.0),
    "r": (2.0, 5.0),
    "k": (5, 9, 19),
}
UNCHANGED = "in use"
COMPARED = (ALL_FEATURES, "default", "variance")
SHARE = 0.3


def plan(options: Options, _entry: DataSetEntry) -> list[Settings]:
    """One per method."""
    return [
        {
            "repetition": 0,
            "missing": options.missing,
            "method": name,
            "identity": METHODS[name].identity,
        }
        for name in COMPARED
    ]


def measure(trial: Trial, labels: Labels, settings: Settings) -> list[Row]:
    """NMI on scaled features with every setting of the judge."""
    method = METHODS[str(settings["method"])]
    share = 1.0 if method.name == ALL_FEATURES else SHARE
    masks = select(method.rank(trial)[0], share, method.own_budget)
    selected = trial.data.select(masks)
    rows: list[Row] = []
    changes = [(name, value) for name, values in CHANGES.items() for value in values]
    for name, value in [(UNCHANGED, 0.0), *changes]:
        gimc = GimcSettings()
        if name == "λ₁":
            gimc = replace(gimc, lambda1=value)
        elif name == "r":
            gimc = replace(gimc, r=value)
        neighbours = int(value) if name == "k" else NEIGHBOURS
        graphs = view_graphs(selected, scaled=True, neighbours=neighbours)
        fit = fit_gimc(graphs, len(labels), trial.clusters, trial.seed, gimc)
        clusters = k_means(unit_rows(fit.consensus), trial.clusters, trial.seed)
        rows.append({"setting": name, "value": value, "nmi": agreement(labels, clusters).nmi})
    return rows


EXPERIMENT = DataSetExperiment(plan, measure, large=False)
