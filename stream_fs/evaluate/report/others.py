"""Tables of the other experiments, from their rows."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

import numpy as np

from stream_fs.evaluate.data import Vector
from stream_fs.evaluate.experiments import drift
from stream_fs.evaluate.experiments.ablation import AS_IT_IS
from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.cells import difference
from stream_fs.evaluate.report.merging import merging_table
from stream_fs.evaluate.report.plots import curves
from stream_fs.evaluate.report.published import NAMES, Published
from stream_fs.evaluate.report.tables import Table, number, signed, with_error
from stream_fs.evaluate.statistics import estimate

COMPARED: Mapping[str, Sequence[str]] = {
    "traits": ["method"],
    "stability": ["method"],
    "drift": ["decay", "drift"],
    "speed": ["method"],
    "convergence": ["preset"],
    "ablation": ["variant"],
    "missing": ["missing", "method"],
    "sensitivity": ["parameter", "value"],
    "grid": ["parameter", "value"],
    "judging": ["method"],
}
"""By experiment, what its tables compare."""
TRAITS = ("noise", "loud", "constant", "heavy-tailed")


def other_tables(rows: Mapping[str, Sequence[Row]], published: Published) -> list[Table]:
    """A table for every experiment that has rows."""
    builders: Mapping[str, Callable[[Sequence[Row]], list[Table]]] = {
        "traits": traits_table,
        "stability": stability_table,
        "drift": drift_table,
        "speed": lambda of: speed_table(of, published),
        "convergence": convergence_figures,
        "ablation": ablation_table,
        "missing": missing_table,
        "sensitivity": lambda of: [parameter_table(of, "default, both judges, 30 % of features")],
        "grid": lambda of: [parameter_table(of, "paper, GIMC_FLSD, all shares")],
        "judging": judging_table,
    }
    found: list[Table] = []
    merging = [*rows.get("merging", ()), *rows.get("merging-long", ())]
    if merging:
        found += merging_table(merging)
    for name, build in builders.items():
        whole = complete(rows.get(name, ()), COMPARED.get(name, ()))
        if whole:
            found += build(whole)
    return found


def traits_table(rows: Sequence[Row]) -> list[Table]:
    """Planted useless features, copies and units."""
    columns = [f"useless: {kind}" for kind in TRAITS]
    columns += ["auc", "repeats", "rank correlation in other units"]
    body = [
        [method, *(with_error(estimate([float(row[c]) for row in of])) for c in columns)]
        for method, of in grouped(rows, "method").items()
    ]
    return [
        Table(
            "What clustering does not show: planted features",
            [
                "method",
                *(f"{kind} chosen" for kind in TRAITS),
                "informative before useless",
                "copies among the chosen",
                "rank correlation after a change of units",
            ],
            body,
            "Made data, half of every view missing. Share of each useless kind that is chosen when "
            "as many features are taken as are informative (best 0); chance that an informative "
            "feature stands before a useless one (best 1); share of the chosen that repeat an "
            "earlier choice (best 0). A random order does not look at units at all.",
        )
    ]


def stability_table(rows: Sequence[Row]) -> list[Table]:
    """Overlaps of choices that should be the same."""
    body = []
    for method, of in grouped(rows, "method").items():
        body.append([method])
        for column in ("chunks", "halves", "units"):
            by_set = [
                float(np.nanmean([float(row[column]) for row in part]))
                for part in grouped(of, "dataset").values()
                if not np.isnan([float(row[column]) for row in part]).all()
            ]
            body[-1].append(with_error(estimate(by_set)))
    sets = len({row["dataset"] for row in rows})
    return [
        Table(
            "Stability of the chosen features",
            ["method", "neighbouring chunks", "halves of the data", "other units"],
            body,
            f"Overlap of two choices of 20 % of the features, mean over {sets} data sets ± "
            "standard error over them. Methods that do not stream are computed again on all rows "
            "so far. The halves have different seeds; elsewhere a random order is the same for the "
            "same seed.",
        )
    ]


def drift_table(rows: Sequence[Row]) -> list[Table]:
    """Chunks until the new features lead, and what decay costs without drift."""
    body = []
    lines: dict[str, list[float]] = {}
    for decay, of in grouped(rows, "decay").items():
        by_drift = {key: grouped(part, "repetition") for key, part in grouped(of, "drift").items()}
        waits = [drift.chunks_until_lead(run) for run in by_drift.get("yes", {}).values()]
        after = [_last(run, "new") for run in by_drift.get("yes", {}).values()]
        calm = [_last(run, "old") for run in by_drift.get("no", {}).values()]
        reached = [wait for wait in waits if np.isfinite(wait)]
        body.append(
            [
                decay,
                f"{np.median(waits):.0f}" if np.isfinite(np.median(waits)) else "never",
                f"{len(reached)} of {len(waits)}",
                with_error(estimate(after)),
                with_error(estimate(calm)),
            ]
        )
        changed = grouped([row for row in of if row["drift"] == "yes"], "chunk")
        lines[f"decay {decay}"] = [
            float(np.mean([float(row["new"]) for row in part])) for part in changed.values()
        ]
    points = [float(i + 1) for i in range(max(map(len, lines.values())))]
    figure = curves(
        "New informative features among the first eight", "chunk", "share", points, lines
    )
    return [
        Table(
            "Drift: the informative features change half way",
            [
                "decay",
                "chunks until the new ones lead (median)",
                "streams in which they do",
                "new ones among the first, at the end",
                "without drift: informative ones among the first, at the end",
            ],
            body,
            f"Made data, {drift.CHUNKS} chunks of {drift.CHUNK} rows, weak groups; the change "
            f"comes after chunk {drift.CHUNKS // 2}. What decay costs on the data sets stands in "
            "the ablation.",
            [figure],
        )
    ]


def speed_table(rows: Sequence[Row], published: Published) -> list[Table]:
    """Incremental speed-up, `IncS = T_other / T_I²MUFS`, by increment."""
    names = ["default, again", "paper", "paper, again", "OMVFS", "Laplacian score", "MiniBatchNMF"]
    names.append("variance")
    body = []
    for dataset, of in grouped(rows, "dataset").items():
        for increment, part in grouped(of, "increment").items():
            seconds = {
                method: float(np.mean([float(row["seconds"]) for row in group]))
                for method, group in grouped(part, "method").items()
            }
            share = f"{0.1 * int(increment):.1f}"
            theirs = published.get(("speedup", NAMES.get(dataset, ""), share, "OMVFS"))
            body.append(
                [
                    dataset,
                    f"{int(increment) * 10} %",
                    number(seconds["default"]),
                    *(f"{seconds[name] / seconds['default']:.1f}" for name in names),
                    "–" if theirs is None else f"{theirs:.1f}",
                    "–" if "paper" not in seconds else f"{seconds['OMVFS'] / seconds['paper']:.1f}",
                ]
            )
    return [
        Table(
            "Incremental speed-up (Table 5)",
            [
                "data set",
                "rows more",
                "default, s",
                *names,
                "OMVFS in the paper",
                "OMVFS here, against preset paper",
            ],
            body,
            "Half of the data first, the rest in five chunks. Processor seconds to bring the "
            "ranking up to date with preset default, and how many times as long the others take; "
            "“again” is the same selector from the start, in chunks. Methods that do not stream "
            "start again.",
        )
    ]


def convergence_figures(rows: Sequence[Row]) -> list[Table]:
    """The objective by iteration, relative to the first."""
    figures = []
    for preset, of in grouped(rows, "preset").items():
        lines = {}
        for dataset, part in grouped(of, "dataset").items():
            last = [float(r["objective"]) for r in part if r["chunk"] == "last"]
            lines[dataset] = [value / last[0] for value in last]
        points = [float(i + 1) for i in range(max(map(len, lines.values())))]
        title = f"preset {preset}, last chunk"
        figures.append(curves(title, "iteration", "objective / first", points, lines))
    return [Table("Convergence", [], [], "The chunk's objective, iteration by iteration.", figures)]


def ablation_table(rows: Sequence[Row]) -> list[Table]:
    """Change of NMI when one named parameter of preset `default` is switched."""
    values = _per_problem(rows, "variant")
    body = []
    for variant in dict.fromkeys(str(row["variant"]) for row in rows):
        names = [n for n in values[variant] if n in values[AS_IT_IS]]
        change = difference(
            names, partial(_values, values[variant]), partial(_values, values[AS_IT_IS])
        )
        mean = float(np.mean([np.mean(list(values[variant][name].values())) for name in names]))
        body.append(
            [
                variant,
                number(mean),
                signed(change.mean),
                number(change.repetitions),
                number(change.sets),
                f"{change.wins} of {len(names)}",
            ]
        )
    return [
        Table(
            "Ablation of preset default (NMI)",
            ["variant", "NMI", "change", "± repetitions", "± sets", "better on"],
            body,
            "Means over both judges on scaled features, 10 and 30 % of the features, and data sets "
            "of up to 5,000 rows, held-out ones included.",
        )
    ]


def missing_table(rows: Sequence[Row]) -> list[Table]:
    """NMI by share of missing instances."""
    levels = sorted({float(row["missing"]) for row in rows})
    lines = {
        method: [
            float(
                np.mean(
                    [
                        np.mean([float(r["nmi"]) for r in part])
                        for part in grouped(
                            [r for r in of if float(r["missing"]) == level], "dataset"
                        ).values()
                    ]
                )
            )
            for level in levels
        ]
        for method, of in grouped(rows, "method").items()
    }
    figure = curves("NMI by share of missing instances", "missing", "NMI", levels, lines)
    return [
        Table(
            "Share of missing instances (NMI)",
            ["method", *(f"{level:.0%}" for level in levels)],
            [[method, *map(number, values)] for method, values in lines.items()],
            "30 % of the features with each method's own budget; means over both judges on scaled "
            "features and data sets of up to 5,000 rows.",
            [figure],
        )
    ]


def parameter_table(rows: Sequence[Row], what: str) -> Table:
    """NMI when one parameter leaves the middle, and the curves."""
    means: dict[str, dict[float, float]] = defaultdict(dict)
    for parameter, of in grouped(rows, "parameter").items():
        for value, part in grouped(of, "value").items():
            by_set = [
                float(np.mean([float(r["nmi"]) for r in group]))
                for group in grouped(part, "dataset").values()
            ]
            means[parameter][float(value)] = float(np.mean(by_set))
    middle = means.pop("middle")[0.0]
    body = [
        [parameter, f"{value:g}", number(mean), signed(mean - middle)]
        for parameter, of in means.items()
        for value, mean in sorted(of.items())
    ]
    figures = [
        curves(
            f"{parameter}: {what}",
            parameter,
            "NMI",
            sorted(of),
            {"mean over data sets": [of[value] for value in sorted(of)]},
            logarithmic=parameter != "lam",
        )
        for parameter, of in means.items()
    ]
    return Table(
        f"Parameter sensitivity: preset {what}",
        ["parameter", "value", "NMI", "less the middle"],
        body,
        f"One parameter at a time; the middle gives {number(middle)}.",
        figures,
    )


def judging_table(rows: Sequence[Row]) -> list[Table]:
    """NMI with other settings of the judge."""
    methods = list(grouped(rows, "method"))
    body = []
    for setting, of in grouped(rows, "setting").items():
        for value, part in grouped(of, "value").items():
            by_method = grouped(part, "method")
            means = [float(np.mean([float(r["nmi"]) for r in by_method[m]])) for m in methods]
            body.append([setting, f"{float(value):g}", *map(number, means)])
    return [
        Table(
            "Sensitivity of the judge GIMC_FLSD (NMI)",
            ["setting", "value", *methods],
            body,
            "In use: pull λ₁ = 10, smoothness r = 3, k = 7 neighbours, features scaled. One "
            "repetition; selectors with 30 % of the features; data sets of up to 5,000 rows.",
        )
    ]


def complete(rows: Sequence[Row], columns: Sequence[str]) -> list[Row]:
    """Rows of the problems (data set, repetition) that have every combination of the columns.

    A run that was stopped has measured some settings on more problems than others: means over
    different problems would not compare.
    """
    problems: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        problem = (str(row["dataset"]), str(row["repetition"]))
        problems.setdefault(problem, []).append(row)
    kinds = {
        key: {tuple(str(row[c]) for c in columns) for row in of} for key, of in problems.items()
    }
    most = max(map(len, kinds.values()), default=0)
    return [row for key, of in problems.items() if len(kinds[key]) == most for row in of]


def grouped(rows: Iterable[Row], column: str) -> dict[str, list[Row]]:
    """Rows by the text of a column, in order of appearance."""
    found: dict[str, list[Row]] = {}
    for row in rows:
        found.setdefault(str(row[column]), []).append(row)
    return found


def _per_problem(rows: Sequence[Row], column: str) -> dict[str, dict[str, dict[str, float]]]:
    """Column's value → data set → repetition → mean NMI."""
    return {
        value: {
            dataset: {
                repetition: float(np.mean([float(row["nmi"]) for row in part]))
                for repetition, part in grouped(group, "repetition").items()
            }
            for dataset, group in grouped(of, "dataset").items()
        }
        for value, of in grouped(rows, column).items()
    }


def _values(of: Mapping[str, Mapping[str, float]], dataset: str) -> Vector:
    """A data set's values, one per repetition."""
    return np.array(list(of[dataset].values()))


def _last(rows: Sequence[Row], column: str) -> float:
    """The mean over the last five chunks."""
    ordered = sorted(rows, key=lambda row: int(row["chunk"]))
    return float(np.mean([float(row[column]) for row in ordered[-5:]]))
