"""Sections as a page that needs nothing but itself, and as Markdown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from stream_fs.evaluate.report.tables import Table

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
