"""Sections with tables and figures, rendered as a self-contained HTML page and as Markdown."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stream_fs.evaluate.errors import ExtraMissing
from stream_fs.evaluate.report.results import Comparison, Estimate, Results

try:
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from matplotlib.figure import Figure
except ImportError as error:
    raise ExtraMissing(
        f"the report needs {error.name}: install the extra with pip install 'stream-fs[evaluate]'"
    ) from error

TITLE = "Quality of the rankings"
TEMPLATE = "page.html.jinja"
TONES: Mapping[str, str] = {
    "met": "good",
    "better": "good",
    "ahead": "good",
    "recommended": "good",
    "met on average only": "so-so",
    "not met": "bad",
    "worse": "bad",
    "behind": "bad",
}
"""CSS classes of results, which are coloured."""


@dataclass(frozen=True)
class Table:
    """A table of text; the first column names the rows."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    figures: Sequence[str] = field(default_factory=tuple)
    """Images that belong to the table, as data URLs."""
    strong: str = ""
    """Name of the row that the others are compared with."""

    def alignments(self) -> list[str]:
        """The CSS class of every column: words are aligned to the left, figures to the right."""
        return [_alignment([row[i] for row in self.rows]) for i in range(len(self.header))]


def _alignment(column: Sequence[str]) -> str:
    known = [cell for cell in column if cell not in ("", "–", "never")]
    return "figures" if known and all(cell[0] in "+-0123456789" for cell in known) else "words"


@dataclass(frozen=True)
class PageSection:
    """A heading with its content: a note, points, tables."""

    title: str
    note: str = ""
    tables: Sequence[Table] = ()
    points: Sequence[str] = ()


@dataclass(frozen=True)
class ReportSection:
    """The part of the report about some experiments, with what the rows of each compare."""

    title: str
    comparisons: Mapping[str, Comparison]
    tables: Callable[[Results], Iterable[Table]]


def number(value: float, places: int = 3) -> str:
    """A figure, or a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:.{places}f}"


def signed(value: float) -> str:
    """A difference with its sign, or a dash for NaN."""
    return "–" if math.isnan(value) else f"{value:+.3f}"


def with_error(value: Estimate, *, difference: bool = False) -> str:
    """Mean ± standard error; the mean alone if the error is not known."""
    mean = signed(value.mean) if difference else number(value.mean)
    return mean if math.isnan(value.error) else f"{mean} ± {value.error:.3f}"


def line_plot(
    title: str,
    x_label: str,
    y_label: str,
    points: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    logarithmic: bool = False,
    min_height: float = 0.0,
) -> str:
    """Lines over common points, as the data URL of a PNG.

    The y axis covers at least ``min_height``, so that noise does not look like an effect.
    """
    figure = Figure(figsize=(6.4, 3.6), layout="constrained")
    axes = figure.subplots()
    for name, values in lines.items():
        axes.plot(list(points)[: len(values)], list(values), marker=".", label=name)
    if logarithmic:
        axes.set_xscale("log")
        axes.set_xticks(list(points), [f"{point:g}" for point in points])
        axes.minorticks_off()
    low, high = axes.get_ylim()
    margin = max(min_height - (high - low), 0.0) / 2
    axes.set_ylim(low - margin, high + margin)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(x_label)
    axes.set_ylabel(y_label)
    axes.grid(alpha=0.3)
    if lines:
        axes.legend(fontsize=7)
    return _data_url(figure)


def _data_url(figure: Figure) -> str:
    content = io.BytesIO()
    # Without date and version, the same rows give the same page.
    figure.savefig(content, format="png", dpi=110, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()


def render_html(sections: Sequence[PageSection]) -> str:
    """One page that refers to no other resource."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    template = environment.get_template(TEMPLATE)
    page: str = template.render(title=TITLE, sections=sections, tones=TONES)
    return page


def render_markdown(sections: Sequence[PageSection]) -> str:
    """The same content without figures."""
    parts = [f"# {TITLE}"]
    for section in sections:
        parts.append(f"## {section.title}")
        if section.note:
            parts.append(section.note)
        if section.points:
            parts.append("\n".join(f"- {point}" for point in section.points))
        for table in section.tables:
            parts += _markdown_table(table)
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> Iterable[str]:
    yield f"### {table.title}"
    if table.note:
        yield table.note
    if table.rows:
        lines = [table.header, ["---"] * len(table.header), *table.rows]
        cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
        yield "\n".join("| " + " | ".join(line) + " |" for line in cells)
