"""The report: Markdown tables of what was measured, with the goals."""

from __future__ import annotations

from collections.abc import Sequence

from tests.benchmarks.growth import Growth
from tests.benchmarks.measure import Comparison, Goal

HEADINGS = {
    "kernels": "Update against its mandatory kernels",
    "rivals": "Other ways against the update",
    "recomputing": "Recomputing from scratch against one update",
    "ranking": "Scores and ranking against the update",
}


def render(
    header: Sequence[str], comparisons: Sequence[Comparison], growths: Sequence[Growth]
) -> str:
    """Everything, one table per section."""
    lines = list(header)
    for section, heading in HEADINGS.items():
        rows = [comparison_row(c) for c in comparisons if c.section == section]
        lines += ["", f"## {heading}", ""]
        lines += aligned(
            ["what", "shape", "numerator s", "denominator s", "ratio", "quartiles", "goal", ""],
            rows,
        )
    lines += ["", "## Growth of one update", ""]
    lines += aligned(
        ["size", "value", "ms per chunk", "per unit", "peak MB", "slope time", "memory",
         "goal", ""],
        [row for growth in growths for row in growth_rows(growth)],
    )  # fmt: skip
    return "\n".join(lines)


def comparison_row(c: Comparison) -> list[str]:
    lower, middle, upper = c.quartiles
    return [
        c.label,
        c.shape,
        f"{c.over_name} {median(c.over):.4f}",
        f"{c.under_name} {median(c.under):.4f}",
        f"{middle:.3g}",
        f"{lower:.3g} … {upper:.3g}",
        *verdict(c.goal, middle),
    ]


def growth_rows(growth: Growth) -> list[list[str]]:
    """One row per value; what is fitted to all of them stands in the last."""
    rows = [
        [
            "",
            f"{point.value:g}",
            f"{1e3 * point.seconds:.1f}",
            f"{duration(point.seconds / point.count)} / {growth.unit}",
            f"{point.bytes / 1e6:.1f}",
            *4 * [""],
        ]
        for point in growth.points
    ]
    rows[0][0] = growth.name
    rows[-1][0] = f"({growth.held})"
    fitted = [f"{growth.time_slope:.2f}", f"{growth.memory_slope:.2f}"]
    rows[-1][5:] = [*fitted, *verdict(growth.goal, growth.time_slope)]
    return rows


def verdict(goal: Goal | None, value: float) -> list[str]:
    if goal is None:
        return ["", ""]
    return [str(goal), "met" if goal.met(value) else "not met"]


def duration(seconds: float) -> str:
    """Three digits, with the unit that suits them."""
    factor, unit = next(
        ((f, u) for f, u in ((1e3, "ms"), (1e6, "µs")) if seconds * f >= 1), (1e9, "ns")
    )
    return f"{seconds * factor:.3g} {unit}"


def median(seconds: Sequence[float]) -> float:
    ordered = sorted(seconds)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[~middle]) / 2


def aligned(titles: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """A Markdown table whose columns line up as plain text too."""
    widths = [max(len(cell) for cell in column) for column in zip(titles, *rows, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
        return f"| {' | '.join(padded)} |"

    return [line(titles), line(["-" * width for width in widths]), *map(line, rows)]
