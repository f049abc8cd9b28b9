"""A table with a title and a note, as HTML and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from html import escape

from stream_fs.evaluate.statistics import Estimate


@dataclass(frozen=True)
class Table:
    """Cells are text already; the first column names the rows."""

    title: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    note: str = ""
    figures: Sequence[str] = field(default_factory=tuple)
    """Images that belong to the table, as data addresses."""

    def html(self) -> str:
        """The table with its title, note and figures."""
        head = "".join(f"<th>{escape(cell)}</th>" for cell in self.header)
        body = "\n".join(
            "<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>"
            for row in self.rows
        )
        parts = [f"<h3>{escape(self.title)}</h3>"]
        if self.note:
            parts.append(f"<p>{escape(self.note)}</p>")
        if self.rows:
            parts.append(f"<table><thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>")
        parts += [f'<img alt="{escape(self.title)}" src="{figure}">' for figure in self.figures]
        return "\n".join(parts)

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
