"""The main comparison: every method, both budgets, every judge, fixed parameters."""

from __future__ import annotations

from stream_fs.evaluate.datasets import Labels
from stream_fs.evaluate.methods.registry import ALL, BUDGETS, METHODS, Method, select
from stream_fs.evaluate.plan import Entry, OnData, Options, Row, Settings
from stream_fs.evaluate.protocol import Bench, Problem, mean_agreement


def plan(options: Options, entry: Entry) -> list[Settings]:
    """A task per repetition and method."""
    return [
        {
            "repetition": repetition,
            "missing": options.missing,
            "method": method.name,
            "identity": method.identity,
            "shares": " ".join(f"{share:g}" for share in options.shares),
        }
        for repetition in range(options.repetitions_of(entry))
        for method in METHODS.values()
    ]


def measure(problem: Problem, labels: Labels, settings: Settings) -> list[Row]:
    """NMI, ARI and F by budget, share and judge."""
    bench = Bench(problem, labels)
    method = METHODS[str(settings["method"])]
    shares = [float(share) for share in str(settings["shares"]).split()]
    return judged_rows(method, bench, [1.0] if method.name == ALL else shares)


def judged_rows(
    method: Method,
    bench: Bench,
    shares: list[float],
    budgets: tuple[str, ...] = BUDGETS,
) -> list[Row]:
    """A row for every budget, share and judge; the mean over the method's draws."""
    draws = method.rank(bench.problem)
    rows: list[Row] = []
    for share in shares:
        for budget in BUDGETS:
            if budget not in budgets:
                continue
            found = [bench.judge(select(orders, share, budget)) for orders in draws]
            for judge in found[0]:
                value = mean_agreement([of[judge] for of in found])
                rows.append(
                    {"share": share, "budget": budget, "judge": judge}
                    | {"nmi": value.nmi, "ari": value.ari, "f": value.f}
                )
    return rows


EXPERIMENT = OnData("ranking", plan, measure)
