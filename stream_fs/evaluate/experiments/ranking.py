"""The main comparison: every method, both budgets, every judge, fixed parameters."""

from __future__ import annotations

from collections.abc import Sequence

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.methods.registry import ALL_FEATURES, BUDGETS, METHODS, Method, select
from stream_fs.evaluate.plan import DataSetEntry, DataSetExperiment, Options, Row, Settings
from stream_fs.evaluate.protocol import JudgePanel, Trial, mean_agreement
from stream_fs.selector.parameters import Budget


def plan(options: Options, entry: DataSetEntry) -> list[Settings]:
    """One per repetition and method."""
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "method": method.name,
            "identity": method.identity,
            "shares": " ".join(f"{share:g}" for share in options.shares),
        }
        for repetition in range(options.repetitions_on(entry))
        for method in METHODS.values()
    ]


def measure(trial: Trial, labels: Labels, settings: Settings) -> list[Row]:
    """NMI, ARI and F by budget, share and judge."""
    method = METHODS[str(settings["method"])]
    shares = [float(share) for share in str(settings["shares"]).split()]
    shares = [1.0] if method.name == ALL_FEATURES else shares
    return judged_rows(method, JudgePanel(trial, labels), shares)


def judged_rows(
    method: Method,
    panel: JudgePanel,
    shares: Sequence[float],
    budgets: Sequence[Budget] = BUDGETS,
) -> list[Row]:
    """A row for every share, budget and judge: the mean agreement over the method's draws."""
    draws = method.rank(panel.trial)
    rows: list[Row] = []
    for share in shares:
        for budget in budgets:
            judged = [panel.judge(select(orders, share, budget)) for orders in draws]
            for judge in judged[0]:
                mean = mean_agreement([agreements[judge] for agreements in judged])
                rows.append(
                    {"share": share, "budget": budget, "judge": judge}
                    | {"nmi": mean.nmi, "ari": mean.ari, "f": mean.f}
                )
    return rows


EXPERIMENT = DataSetExperiment(plan, measure)
