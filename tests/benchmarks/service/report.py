"""The report: what was measured, where, and whether the goals are met."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import Any

from tests.benchmarks.growth import Growth
from tests.benchmarks.machine import clients, machine, stolen
from tests.benchmarks.measure import Comparison
from tests.benchmarks.service.floors import TIMES
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.sections import Figure, Section
from tests.support.markdown_table import aligned, growth_rows, median, verdict

NOTES = (
    "seconds and rates are by the clock, medians of the turns; programs take turns, and ratios "
    "are taken within a turn",
    "ratio: median over the turns, with the interval that holds the true median with a confidence "
    "of 95 % (the whole range below six turns), and the quartiles",
    "the service is a process of its own with its metrics, log and status page, but for 'Exactly "
    "once', where the pipeline runs in the process that measures",
    "the broker has committed chunks before anything is measured, until it has compiled itself",
    "growth: processor time of the service's process, every update with as many iterations; "
    "slope 1 is linear",
)


class Report:
    """Collects the figures of sections."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._machine = {**machine(), **clients()}
        self._found: list[tuple[Section, list[Figure]]] = []
        self._stolen: dict[str, float] = {}

    def add(self, section: Section, figures: Iterable[Figure]) -> None:
        """Measure a section, and note how much of the machine others had meanwhile."""
        taken, passed = stolen()
        self._found.append((section, list(figures)))
        others, all_of_it = stolen()
        self._stolen[section.name] = (others - taken) / max(all_of_it - passed, 1)
        self._machine |= section.versions()

    def goals(self) -> dict[str, bool]:
        """Every goal by what it is about, and whether it was met."""
        return {
            f"{section.name}: {label(figure)}": figure.goal.met(value(figure))
            for section, figures in self._found
            for figure in figures
            if figure.goal is not None
        }

    def verdict(self) -> list[str]:
        """How many goals were met, and each that was missed."""
        goals = self.goals()
        lines = [f"{sum(goals.values())} of {len(goals)} goals were met"]
        return lines + [f"missed: {goal}" for goal, met in goals.items() if not met]

    def markdown(self) -> str:
        lines = ["# The service, measured", ""]
        lines += [f"- {name}: {value}" for name, value in self._machine.items()]
        lines += [f"- {self._plan.turns} turns; end to end, {TIMES} times as many"]
        lines += [f"- {note}" for note in NOTES]
        for section, figures in self._found:
            lines += ["", f"## {section.heading}", ""]
            lines += [f"Withheld by the hypervisor meanwhile: {self._stolen[section.name]:.1%}."]
            if compared := [figure for figure in figures if isinstance(figure, Comparison)]:
                lines += ["", *comparisons(compared)]
            if grown := [figure for figure in figures if isinstance(figure, Growth)]:
                lines += ["", *growths(grown)]
        lines += ["", "## Goals", "", *(f"- {line}" for line in self.verdict())]
        return "\n".join(lines) + "\n"

    def json(self) -> str:
        figures = [figure for _, found in self._found for figure in found]
        document = {
            "machine": self._machine,
            "turns": self._plan.turns,
            "withheld": self._stolen,
            "comparisons": [plain(found) for found in figures if isinstance(found, Comparison)],
            "growth": [
                {
                    **asdict(found),
                    "time_slope": found.time_slope,
                    "memory_slope": found.memory_slope,
                }
                for found in figures
                if isinstance(found, Growth)
            ],
        }
        return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


def label(figure: Figure) -> str:
    """What a figure is about, in a line."""
    if isinstance(figure, Growth):
        return f"{figure.name}, time {figure.goal}, found {value(figure):.3g}"
    return f"{figure.label} ({figure.shape}) {figure.goal}, found {value(figure):.3g}"


def value(figure: Figure) -> float:
    """What its goal is about."""
    return figure.time_slope if isinstance(figure, Growth) else figure.quartiles[1]


def comparisons(figures: Iterable[Comparison]) -> list[str]:
    titles = ["what", "shape", "numerator", "denominator", "ratio", "95 %", "quartiles", "goal", ""]
    return aligned(titles, [row(figure) for figure in figures])


def growths(figures: Iterable[Growth]) -> list[str]:
    """As the selector's, with the rates by the clock."""
    titles = ["size", "value", "records/s", "CPU ms per chunk", "per unit", "MB beyond idle",
              "slope time", "memory", "goal", ""]  # fmt: skip
    rows = []
    for figure in figures:
        for point, cells in zip(figure.points, growth_rows(figure), strict=True):
            rows.append([*cells[:2], f"{point.rate:,.0f}", *cells[2:]])
    return aligned(titles, rows)


def row(figure: Comparison) -> list[str]:
    lower, middle, upper = figure.quartiles
    return [
        figure.label,
        figure.shape,
        f"{figure.over_name} {amount(figure, figure.over)}",
        f"{figure.under_name} {amount(figure, figure.under)}",
        f"{middle:.3g}",
        "{:.3g} … {:.3g}".format(*figure.interval),
        f"{lower:.3g} … {upper:.3g}",
        *verdict(figure.goal, middle),
    ]


def amount(figure: Comparison, seconds: Iterable[float]) -> str:
    taken = median(tuple(seconds))
    return f"{figure.records / taken:,.0f}/s" if figure.records else f"{taken:.3f} s"


def plain(figure: Comparison) -> dict[str, Any]:
    lower, middle, upper = figure.quartiles
    return {
        **asdict(figure),
        "ratio": {"median": middle, "lower": lower, "upper": upper, "interval": figure.interval},
        "met": None if figure.goal is None else figure.goal.met(middle),
    }
