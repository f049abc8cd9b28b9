"""Drift: chunks until the new features lead, the decay that is recommended, and what it costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.evaluate.datasets import Vector
from stream_fs.evaluate.experiments import drift
from stream_fs.evaluate.plan import Row
from stream_fs.evaluate.report.page import Table, curves, number, with_error
from stream_fs.evaluate.report.parameters import changes
from stream_fs.evaluate.report.results import estimate, grouped

TRAITS = ("noise", "loud", "constant", "heavy-tailed")


def traits_table(rows: Sequence[Row]) -> Table:
    """Planted useless features, copies and units."""
    columns = [f"useless: {kind}" for kind in TRAITS]
    columns += ["auc", "repeats", "rank correlation in other units"]
    body = [
        [method, *(with_error(estimate([float(row[c]) for row in of])) for c in columns)]
        for method, of in grouped(rows, "method").items()
    ]
    return Table(
        "Planted features",
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
        "earlier choice (best 0). A random order does not look at units at all. ± is the standard "
        "error over repetitions.",
        strong="default",
    )


def planted_in_words(rows: Sequence[Row]) -> str:
    """How well planted features are told apart, beside the best of the others."""
    areas = {
        method: float(np.mean([float(row["auc"]) for row in of]))
        for method, of in grouped(rows, "method").items()
    }
    ours = areas.pop("default")
    text = (
        "Planted features: with default an informative one stands before a useless one with "
        f"chance {number(ours, 2)}"
    )
    if areas:
        best = max(areas, key=lambda method: areas[method])
        text += f", with the best of the others ({best}) {number(areas[best], 2)}"
    return text + "."


def stability_table(rows: Sequence[Row]) -> Table:
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
    return Table(
        "Stability of the chosen features",
        ["method", "neighbouring chunks", "halves of the data", "other units"],
        body,
        f"Overlap of two choices of 20 % of the features (best 1), mean over {sets} data sets ± "
        "standard error over them. Methods that do not stream are computed again on all rows "
        "so far. The halves have different seeds; elsewhere a random order is the same for the "
        "same seed.",
        strong="default",
    )


SOON = 15
"""Chunks within which the new features are to lead."""
AT_THE_END = 5
"""Chunks over which the end is averaged."""


@dataclass(frozen=True)
class Streams:
    """Streams with one decay, one value per repetition."""

    waits: Vector
    """Chunks until the new features lead, infinite where they never do."""
    after: Vector
    """Share of the new features among the first, at the end."""
    calm: Vector
    """Without drift, share of the informative features among the first, at the end."""

    @property
    def soon(self) -> bool:
        """Whether the new features lead in time in every stream."""
        return len(self.waits) > 0 and bool((self.waits <= SOON).all())


def streams_by_decay(rows: Sequence[Row]) -> dict[float, Streams]:
    """The streams of every decay, the one that forgets least first."""
    found = {}
    for decay, of in grouped(rows, "decay").items():
        parts = grouped(of, "drift")
        moved, calm = (
            list(grouped(parts.get(key, ()), "repetition").values()) for key in ("yes", "no")
        )
        found[float(decay)] = Streams(
            np.array([drift.chunks_until_lead(run) for run in moved]),
            np.array([_end(run, "new") for run in moved]),
            np.array([_end(run, "old") for run in calm]),
        )
    return dict(sorted(found.items(), reverse=True))


def recommended(streams: Mapping[float, Streams]) -> float | None:
    """The decay that forgets least of those with which the new features lead soon everywhere."""
    return max((decay for decay, of in streams.items() if of.soon), default=None)


def recommendation(rows: Sequence[Row], ablation: Sequence[Row]) -> str:
    """Which decay is recommended, and what it costs where nothing drifts."""
    streams = streams_by_decay(rows)
    chosen = recommended(streams)
    least = max(streams)
    if chosen is None:
        return (
            f"With no decay that was tried do the new features lead within {SOON} chunks in every "
            "stream: none is recommended."
        )
    text = (
        f"Recommended where features may change: decay {chosen:g}, the largest with which the new "
        f"features lead within {SOON} chunks in every stream."
    )
    if chosen == least:
        return text
    cost = estimate(streams[chosen].calm - streams[least].calm)
    text += (
        f" Where nothing drifts it changes the share of informative features among the first by "
        f"{with_error(cost, difference=True)}, against decay {least:g} (± over streams)"
    )
    change = changes(ablation).get(f"decay {chosen:g}") if ablation else None
    if change is None:
        return text + "; on the data sets the ablation has not measured it."
    return text + (
        f", and NMI on the data sets of the ablation by "
        f"{with_error(change.over_sets, difference=True)} (± over data sets)."
    )


def drift_table(rows: Sequence[Row], ablation: Sequence[Row]) -> Table:
    """Chunks until the new features lead, and what decay costs without drift."""
    streams = streams_by_decay(rows)
    chosen = recommended(streams)
    body = []
    for decay, of in streams.items():
        middle = np.median(of.waits)
        body.append(
            [
                f"{decay:g}",
                f"{middle:.0f}" if np.isfinite(middle) else "never",
                f"{np.isfinite(of.waits).sum()} of {len(of.waits)}",
                f"{(of.waits <= SOON).sum()} of {len(of.waits)}",
                with_error(estimate(of.after)),
                with_error(estimate(of.calm)),
                "recommended" if decay == chosen else "",
            ]
        )
    return Table(
        "Drift: the informative features change half way",
        [
            "decay",
            "chunks until the new ones lead (median)",
            "streams in which they do",
            f"within {SOON} chunks",
            "new ones among the first, at the end",
            "without drift: informative ones among the first, at the end",
            "",
        ],
        body,
        f"Made data, {drift.CHUNKS} chunks of {drift.CHUNK} rows, weak groups; the change "
        f"comes after chunk {drift.CHUNKS // 2}. {recommendation(rows, ablation)}",
        [_figure(rows)],
        strong="" if chosen is None else f"{chosen:g}",
    )


def _figure(rows: Sequence[Row]) -> str:
    lines: dict[str, list[float]] = {}
    for decay, of in grouped((row for row in rows if row["drift"] == "yes"), "decay").items():
        lines[f"decay {float(decay):g}"] = [
            float(np.mean([float(row["new"]) for row in part]))
            for _, part in sorted(grouped(of, "chunk").items(), key=lambda item: int(item[0]))
        ]
    points = [float(i + 1) for i in range(max(map(len, lines.values()), default=0))]
    title = "New informative features among the first eight"
    return curves(title, "chunk", "share", points, lines)


def _end(rows: Sequence[Row], column: str) -> float:
    """The mean over the last chunks."""
    ordered = sorted(rows, key=lambda row: int(row["chunk"]))
    return float(np.mean([float(row[column]) for row in ordered[-AT_THE_END:]]))
