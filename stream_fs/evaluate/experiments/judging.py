"""How much the settings of the judge GIMC_FLSD matter: one at a time from those in use."""

from __future__ import annotations

from dataclasses import replace

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.graphs import NEIGHBOURS, unit_rows, view_graphs
from stream_fs.evaluate.judges import GimcSettings, agreement, fit_gimc
from stream_fs.evaluate.methods.registry import ALL, METHODS, select
from stream_fs.evaluate.plan import Entry, OnData, Options, Row, Settings
from stream_fs.evaluate.protocol import Problem
from stream_fs.evaluate.sklearn_adapter import k_means

CHANGES: dict[str, tuple[float, ...]] = {
    "pull": (0.01, 1.0, 100.0),
    "smoothness": (2.0, 5.0),
    "neighbours": (5, 9, 19),
}
COMPARED = (ALL, "default", "variance")
SHARE = 0.3


def plan(options: Options, _entry: Entry) -> list[Settings]:
    """A task per method; large data sets are left out."""
    return [
        {
            "repetition": 0,
            "missing": options.missing,
            "method": name,
            "identity": METHODS[name].identity,
        }
        for name in COMPARED
    ]


def measure(problem: Problem, labels: Labels, settings: Settings) -> list[Row]:
    """NMI with every setting of the judge, on scaled features."""
    method = METHODS[str(settings["method"])]
    share = 1.0 if method.name == ALL else SHARE
    masks = select(method.rank(problem)[0], share, method.own_budget)
    selected = problem.data.select(masks)
    rows: list[Row] = []
    for name, value in [("in use", 0.0), *((n, v) for n, vs in CHANGES.items() for v in vs)]:
        neighbours = int(value) if name == "neighbours" else NEIGHBOURS
        judge = GimcSettings()
        if name == "pull":
            judge = replace(judge, pull=value)
        elif name == "smoothness":
            judge = replace(judge, smoothness=value)
        views = view_graphs(selected, scaled=True, neighbours=neighbours)
        fit = fit_gimc(views, len(labels), problem.clusters, problem.seed, judge)
        clusters = k_means(unit_rows(fit.consensus), problem.clusters, problem.seed)
        rows.append({"setting": name, "value": value, "nmi": agreement(labels, clusters).nmi})
    return rows


EXPERIMENT = OnData("judging", plan, measure, large=False)
