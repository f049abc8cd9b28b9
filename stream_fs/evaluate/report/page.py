"""Sections as a page that needs nothing but itself, and as Markdown."""

from __future__ import annotations

import base64
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from stream_fs.evaluate.errors import ExtraMissing
from stream_fs.evaluate.report.results import Estimate

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
"""Results that the eye should find."""


@dataclass(frozen=True)
class Table:
    """Cells are text already; the first column names the rows."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    figures: Sequence[str] = field(default_factory=tuple)
    """Images that belong to the table, as data addresses."""
    strong: str = ""
    """The name of the row that the others are compared with."""

    def html(self) -> str:
        """The table with its title, note and figures."""
        kinds = [_kind([row[i] for row in self.rows]) for i in range(len(self.header))]
        head = "".join(
            f'<th class="{kind}">{escape(cell)}</th>'
            for cell, kind in zip(self.header, kinds, strict=True)
        )
        body = "\n".join(self._row(row, kinds) for row in self.rows)
        parts = [f"<h3>{escape(self.title)}</h3>"]
        if self.note:
            parts.append(f"<p>{escape(self.note)}</p>")
        if self.rows:
            parts.append(f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>")
        parts += [f'<img alt="{escape(self.title)}" src="{figure}">' for figure in self.figures]
        return "\n".join(parts)

    def _row(self, row: Sequence[str], kinds: Sequence[str]) -> str:
        cells = "".join(
            f'<td class="{" ".join(filter(None, (kind, TONES.get(cell))))}">{_content(cell)}</td>'
            for cell, kind in zip(row, kinds, strict=True)
        )
        strong = ' class="strong"' if self.strong and row[0] == self.strong else ""
        return f"<tr{strong}>{cells}</tr>"

    def markdown(self) -> str:
        """The table with its title and note."""
        parts = [f"### {self.title}"]
        if self.note:
            parts.append(self.note)
        if self.rows:
            lines = [self.header, ["---"] * len(self.header), *self.rows]
            cells = [[cell.replace("|", "\\|") for cell in line] for line in lines]
            parts.append("\n".join("| " + " | ".join(line) + " |" for line in cells))
        return "\n\n".join(parts)


def _content(cell: str) -> str:
    """The text; a mark takes no room, so that figures stay under each other."""
    marked = cell.endswith("*")
    return escape(cell.removesuffix("*")) + ('<span class="mark">*</span>' if marked else "")


def _kind(column: Sequence[str]) -> str:
    """Words stand on the left, figures on the right."""
    known = [cell for cell in column if cell not in ("", "–", "never")]
    return "figures" if known and all(cell[0] in "+-0123456789" for cell in known) else "words"


def number(value: float, places: int = 3) -> str:
    """A figure, or a dash where there is none."""
    return "–" if math.isnan(value) else f"{value:.{places}f}"


def signed(value: float) -> str:
    """A difference, with its sign."""
    return "–" if math.isnan(value) else f"{value:+.3f}"


def with_error(value: Estimate, *, difference: bool = False) -> str:
    """Mean ± standard error; the mean alone where there is one value."""
    mean = signed(value.mean) if difference else number(value.mean)
    return mean if math.isnan(value.error) else f"{mean} ± {value.error:.3f}"


try:
    from matplotlib.figure import Figure
except ImportError as error:
    raise ExtraMissing(
        "the report needs matplotlib: install the extra with pip install 'stream-fs[evaluate]'"
    ) from error


def curves(
    title: str,
    across: str,
    up: str,
    points: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    logarithmic: bool = False,
    least_height: float = 0.0,
) -> str:
    """Lines over common points, as the address of a PNG.

    The axis covers at least ``least_height``: noise should not look like an effect.
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
    room = max(least_height - (high - low), 0.0) / 2
    axes.set_ylim(low - room, high + room)
    axes.set_title(title, fontsize=10)
    axes.set_xlabel(across)
    axes.set_ylabel(up)
    axes.grid(alpha=0.3)
    if lines:
        axes.legend(fontsize=7)
    return _address(figure)


def _address(figure: Figure) -> str:
    content = io.BytesIO()
    # No date and no version: the same rows give the same page.
    figure.savefig(content, format="png", dpi=110, metadata={"Software": None})
    return "data:image/png;base64," + base64.b64encode(content.getvalue()).decode()


TITLE = "How good the rankings are"
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2430; background: #fff; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid #ccd; }
h3 { margin: 2rem 0 .4rem; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: 13px; }
td, th { padding: .25rem .6rem; border-bottom: 1px solid #e3e6ee; text-align: right;
  font-variant-numeric: tabular-nums; }
th { vertical-align: bottom; min-width: 3.5rem; max-width: 9rem; } td { white-space: nowrap; }
td.words, th.words { text-align: left; white-space: normal; max-width: 34rem; }
td:first-child, th:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
tbody tr:hover td { background: #f4f6fb; }
.mark { position: absolute; } .strong td { font-weight: 600; }
.good { color: #14713d; } .so-so { color: #8a5a00; } .bad { color: #b3261e; }
nav a { margin-right: 1.2rem; color: #24527a; white-space: nowrap; }
img { max-width: 48%; margin: 1rem 1% 0 0; } p, li { max-width: 60rem; color: #445; }
li { margin-bottom: .4rem; }
@media (max-width: 50rem) { img { max-width: 100%; } }
"""


@dataclass(frozen=True)
class Section:
    """A heading with what is said under it: a note, points, tables."""

    title: str
    note: str = ""
    tables: Sequence[Table] = ()
    points: Sequence[str] = ()


def html(found: Sequence[Section]) -> str:
    """One page, nothing to load."""
    places = "".join(
        f'<a href="#s{number}">{escape(section.title)}</a>\n'
        for number, section in enumerate(found, 1)
    )
    body = "\n".join(_section(section, number) for number, section in enumerate(found, 1))
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>stream_fs evaluation</title><style>{STYLE}</style></head>\n"
        f"<body><h1>{TITLE}</h1>\n<nav>{places}</nav>\n{body}\n</body></html>\n"
    )


def _section(section: Section, number: int) -> str:
    parts = [f'<h2 id="s{number}">{escape(section.title)}</h2>']
    if section.note:
        parts.append(f"<p>{escape(section.note)}</p>")
    if section.points:
        parts.append(f"<ul>{''.join(f'<li>{escape(of)}</li>' for of in section.points)}</ul>")
    return "\n".join([*parts, *(table.html() for table in section.tables)])


def markdown(found: Sequence[Section]) -> str:
    """The same without figures."""
    parts = [f"# {TITLE}"]
    for section in found:
        parts.append(f"## {section.title}")
        if section.note:
            parts.append(section.note)
        if section.points:
            parts.append("\n".join(f"- {point}" for point in section.points))
        parts += [table.markdown() for table in section.tables]
    return "\n\n".join(parts) + "\n"
