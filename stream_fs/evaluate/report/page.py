"""The whole report, as a page that needs nothing but itself, and as Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape

from stream_fs.evaluate.methods import METHODS, MISSING_METHODS, RANDOM_DRAWS
from stream_fs.evaluate.plan import LARGE, LARGE_REPETITIONS, Entry, Options, Row
from stream_fs.evaluate.report.cells import Cells
from stream_fs.evaluate.report.compared import compared_tables, goals
from stream_fs.evaluate.report.others import other_tables
from stream_fs.evaluate.report.published import RECOMPUTED, Published, published_tables
from stream_fs.evaluate.report.tables import Table

STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem;
  color: #1c2430; background: #fff; }
h1, h2, h3 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid #ccd; }
table { border-collapse: collapse; display: block; overflow-x: auto; font-size: 13px; }
td, th { padding: .25rem .6rem; border-bottom: 1px solid #e3e6ee; text-align: right;
  white-space: nowrap; font-variant-numeric: tabular-nums; }
td:first-child, th:first-child { text-align: left; position: sticky; left: 0; background: #fff; }
img { max-width: 48%; margin: 1rem 1% 0 0; } p { max-width: 60rem; color: #445; }
"""


@dataclass(frozen=True)
class Section:
    """A heading with its tables."""

    title: str
    note: str
    tables: Sequence[Table]


@dataclass(frozen=True)
class Progress:
    """How much of the plan has been measured."""

    done: int
    planned: int


def sections(
    rows: Mapping[str, Sequence[Row]],
    entries: Sequence[Entry],
    options: Options,
    published: Published,
    progress: Progress,
) -> list[Section]:
    """Everything that the rows have to say."""
    cells = Cells(rows["ranking"]) if rows.get("ranking") else None
    if cells is not None and not cells.datasets:
        cells = None
    found = [Section("What was measured", _setup_note(options, progress), [_sets(entries)])]
    if cells is not None:
        found.append(Section("Goals", _roles_note(), [goals(cells, entries)]))
        note = (
            f"At {options.missing:.0%} missing instances per view, fixed parameters, two judges on "
            "raw and on scaled features. No label chose anything here but the defaults, which were "
            "chosen on the development data."
        )
        found.append(Section("Fixed parameters", note, compared_tables(cells, entries)))
    beside = published_tables(published, rows.get("grid", ()), cells)
    if beside:
        found.append(Section("Beside the paper", "", beside))
    others = other_tables(rows, published)
    if others:
        found.append(Section("Other experiments", "", others))
    found.append(Section("Methods", _methods_note(), []))
    return found


def html(found: Sequence[Section]) -> str:
    """One page, nothing to load."""
    body = "\n".join(
        f"<h2>{escape(section.title)}</h2>\n<p>{escape(section.note)}</p>\n"
        + "\n".join(table.html() for table in section.tables)
        for section in found
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width">\n'
        f"<title>stream_fs evaluation</title><style>{STYLE}</style></head>\n"
        f"<body><h1>How good the rankings are</h1>\n{body}\n</body></html>\n"
    )


def markdown(found: Sequence[Section]) -> str:
    """The tables alone, without figures."""
    parts = ["# How good the rankings are"]
    for section in found:
        parts.append(f"## {section.title}")
        if section.note:
            parts.append(section.note)
        parts += [table.markdown() for table in section.tables]
    return "\n\n".join(parts) + "\n"


def _sets(entries: Sequence[Entry]) -> Table:
    return Table(
        "Data sets",
        ["data set", "role", "instances", "features", "classes", "features as in the paper"],
        [
            [
                entry.name,
                entry.role,
                str(entry.instances),
                " / ".join(map(str, entry.dimensions)),
                str(entry.classes),
                "–" if entry.role == "held-out" else _same(entry.name),
            ]
            for entry in entries
        ],
    )


def _same(name: str) -> str:
    return "no, recomputed" if name in RECOMPUTED else "yes"


def _setup_note(options: Options, progress: Progress) -> str:
    text = (
        f"{progress.done} of {progress.planned} measurements are there. "
        f"{options.repetitions} repetitions (the paper: 30), {LARGE_REPETITIONS} for data sets of "
        f"more than {LARGE} rows; some experiments repeat less often or leave large sets out, and "
        f"say so. Removal: {options.masks}. Random selection: {RANDOM_DRAWS} draws per repetition."
    )
    if options.rows is not None:
        text += f" Of data sets of more than {options.rows} rows, so many were taken at random."
    if options.quick:
        text += " A quick run: too few repetitions to conclude anything."
    return text


def _roles_note() -> str:
    return (
        "Data sets of the user's directory are development data: the defaults of the selector were "
        "chosen on the six shared ones. The built-in sets took no part in that and are held out."
    )


def _methods_note() -> str:
    return (
        f"Compared: {', '.join(METHODS)}. Missing from the paper's tables, to be added to the "
        f"registry of methods: {', '.join(MISSING_METHODS)}. Presets paper and classical work on "
        "unit rows. With preset default, views of which at least 80 % of the values are zero are "
        "declared as counts (transform unit), as the documentation advises; all others are left to "
        "the preset. OMVFS has the best of five settings that were tried on four development sets."
    )
