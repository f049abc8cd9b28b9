"""Properties that a clustering does not show: planted features, stability, and drift."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.evaluate.datasets import Vector
from stream_fs.evaluate.experiments import drift, traits
from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.page import (
    ReportSection,
    Table,
    line_plot,
    number,
    with_error,
)
from stream_fs.evaluate.report.parameters import variant_changes
from stream_fs.evaluate.report.results import Comparison, Results, estimate, grouped, mean_of

USELESS = tuple(kind for kind in traits.KINDS if kind != "informative")
MAX_WAIT = 15
"""Chunks within which the new features should lead."""
LAST_CHUNKS = 5
"""Chunks over which the end of a stream is averaged."""


def traits_table(rows: Sequence[Row]) -> Table:
    """Useless features, copies and units, by method."""
    columns = [f"useless: {kind}" for kind in USELESS]
    columns += ["auc", "repeats", "rank correlation in other units"]
    body = [
        [method, *(with_error(estimate([float(row[c]) for row in group])) for c in columns)]
        for method, group in grouped(rows, "method").items()
    ]
    return Table(
        "Planted features",
        [
            "method",
            *(f"{kind} selected" for kind in USELESS),
            "informative before useless",
            "copies among the selected",
            "rank correlation after a change of units",
        ],
        body,
        "Generated data, half of every view missing. Share of each useless kind among as many "
        "selected features as there are informative ones (best 0); probability that an informative "
        "feature precedes a useless one (best 1); share of copies of an earlier feature among the "
        "selected (best 0). A random order does not depend on units. ± is the standard error over "
        "repetitions.",
        strong="default",
    )


def traits_sentence(rows: Sequence[Row]) -> str:
    """How well informative features are separated, compared with the best other method."""
    areas = {method: mean_of(group, "auc") for method, group in grouped(rows, "method").items()}
    default = areas.pop("default")
    text = (
        "Planted features: with default an informative one precedes a useless one with probability "
        f"{number(default, 2)}"
    )
    if areas:
        best = max(areas, key=lambda method: areas[method])
        text += f", with the best of the others ({best}) {number(areas[best], 2)}"
    return text + "."


def stability_table(rows: Sequence[Row]) -> Table:
    """Overlaps of selections that should be equal."""
    body = []
    for method, group in grouped(rows, "method").items():
        body.append([method])
        for column in ("chunks", "halves", "units"):
            means = [
                float(np.nanmean([float(row[column]) for row in part]))
                for part in grouped(group, "dataset").values()
                if not np.isnan([float(row[column]) for row in part]).all()
            ]
            body[-1].append(with_error(estimate(means)))
    datasets = len({row["dataset"] for row in rows})
    return Table(
        "Stability of the selected features",
        ["method", "neighbouring chunks", "halves of the data", "other units"],
        body,
        f"Overlap of two selections of 20 % of the features (best 1), mean over {datasets} data "
        "sets ± standard error over them. Methods that do not stream process all rows so far "
        "again. The halves have different seeds; otherwise a random order is the same for the "
        "same seed.",
        strong="default",
    )


@dataclass(frozen=True)
class DriftRuns:
    """Streams with one decay, one value per repetition."""

    waits: Vector
    """Chunks until the new features lead, infinite if they never do."""
    with_drift: Vector
    """Share of the new features among the first, at the end."""
    without_drift: Vector
    """Without drift, share of the informative features among the first, at the end."""

    @property
    def in_time(self) -> bool:
        """Whether the new features lead in time in every stream."""
        return len(self.waits) > 0 and bool((self.waits <= MAX_WAIT).all())


def runs_by_decay(rows: Sequence[Row]) -> dict[float, DriftRuns]:
    """The streams of every decay, largest decay first."""
    runs = {}
    for decay, group in grouped(rows, "decay").items():
        parts = grouped(group, "drift")
        drifting, stationary = (
            list(grouped(parts.get(key, ()), "repetition").values()) for key in ("yes", "no")
        )
        runs[float(decay)] = DriftRuns(
            np.array([drift.chunks_until_lead(run) for run in drifting]),
            np.array([_final_share(run, "new") for run in drifting]),
            np.array([_final_share(run, "old") for run in stationary]),
        )
    return dict(sorted(runs.items(), reverse=True))


def recommended_decay(runs: Mapping[float, DriftRuns]) -> float | None:
    """The largest decay with which the new features lead in time in every stream."""
    return max((decay for decay, run in runs.items() if run.in_time), default=None)


def decay_sentence(rows: Sequence[Row], ablation: Sequence[Row]) -> str:
    """The recommended decay, and its cost where nothing drifts."""
    runs = runs_by_decay(rows)
    recommended = recommended_decay(runs)
    largest = max(runs)
    if recommended is None:
        return (
            f"With none of the decays do the new features lead within {MAX_WAIT} chunks in every "
            "stream: none is recommended."
        )
    text = (
        f"Recommended where features may change: decay {recommended:g}, the largest with which the "
        f"new features lead within {MAX_WAIT} chunks in every stream."
    )
    if recommended == largest:
        return text
    cost = estimate(runs[recommended].without_drift - runs[largest].without_drift)
    text += (
        f" Without drift it changes the share of informative features among the first by "
        f"{with_error(cost, difference=True)}, compared with decay {largest:g} (± over streams)"
    )
    changes = variant_changes(ablation) if ablation else {}
    change = changes.get(f"decay {recommended:g}")
    if change is None:
        return text + "; the ablation has not measured it on the data sets."
    return text + (
        f", and NMI on the data sets of the ablation by "
        f"{with_error(change.over_datasets, difference=True)} (± over data sets)."
    )


def drift_table(rows: Sequence[Row], ablation: Sequence[Row]) -> Table:
    """Chunks until the new features lead, and the cost of decay without drift."""
    runs = runs_by_decay(rows)
    recommended = recommended_decay(runs)
    body = []
    for decay, run in runs.items():
        median = np.median(run.waits)
        body.append(
            [
                f"{decay:g}",
                f"{median:.0f}" if np.isfinite(median) else "never",
                f"{np.isfinite(run.waits).sum()} of {len(run.waits)}",
                f"{(run.waits <= MAX_WAIT).sum()} of {len(run.waits)}",
                with_error(estimate(run.with_drift)),
                with_error(estimate(run.without_drift)),
                "recommended" if decay == recommended else "",
            ]
        )
    return Table(
        "Drift: the informative features change half way",
        [
            "decay",
            "chunks until the new ones lead (median)",
            "streams in which they do",
            f"within {MAX_WAIT} chunks",
            "new ones among the first, at the end",
            "without drift: informative ones among the first, at the end",
            "",
        ],
        body,
        f"Generated data, {drift.CHUNKS} chunks of {drift.CHUNK} rows, weakly separated groups; "
        f"the change is after chunk {drift.CHUNKS // 2}. {decay_sentence(rows, ablation)}",
        [_figure(rows)],
        strong="" if recommended is None else f"{recommended:g}",
    )


def _figure(rows: Sequence[Row]) -> str:
    lines: dict[str, list[float]] = {}
    for decay, group in grouped((row for row in rows if row["drift"] == "yes"), "decay").items():
        lines[f"decay {float(decay):g}"] = [
            mean_of(part, "new")
            for _, part in sorted(grouped(group, "chunk").items(), key=lambda item: int(item[0]))
        ]
    points = [float(i + 1) for i in range(max(map(len, lines.values()), default=0))]
    title = "New informative features among the first eight"
    return line_plot(title, "chunk", "share", points, lines)


def _final_share(rows: Sequence[Row], column: str) -> float:
    """The mean over the last chunks."""
    ordered = sorted(rows, key=lambda row: int(row["chunk"]))
    return mean_of(ordered[-LAST_CHUNKS:], column)


def tables(results: Results) -> Iterator[Table]:
    """The tables of this section."""
    if rows := results.rows_of("traits"):
        yield traits_table(rows)
    if rows := results.rows_of("stability"):
        yield stability_table(rows)
    if rows := results.rows_of("drift"):
        yield drift_table(rows, results.rows_of("ablation"))


SECTION = ReportSection(
    "Planted features, stability and drift",
    {
        "traits": Comparison(("method",)),
        "stability": Comparison(("method",)),
        "drift": Comparison(("decay", "drift")),
    },
    tables,
)
