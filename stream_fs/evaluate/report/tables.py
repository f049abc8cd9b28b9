"""A table with a title and a note, as HTML and as Markdown."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from html import escape

from stream_fs.evaluate.statistics import Estimate

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
