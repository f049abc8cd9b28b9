"""What the report says, section by section, from the rows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from stream_fs.evaluate.experiments import grid, sensitivity
from stream_fs.evaluate.methods.registry import METHODS, MISSING_METHODS, RANDOM_DRAWS
from stream_fs.evaluate.plan import (
    DEVELOPMENT,
    LARGE,
    LARGE_REPETITIONS,
    Entry,
    Options,
    Refused,
    Row,
)
from stream_fs.evaluate.report.cost import convergence_figures, merging_table, speed_tables
from stream_fs.evaluate.report.goals import (
    beside_variance,
    find_goals,
    goals_table,
    in_words,
    variance_in_words,
    variance_table,
)
from stream_fs.evaluate.report.main_comparison import compared_tables, means_in_words
from stream_fs.evaluate.report.page import Section, Table
from stream_fs.evaluate.report.paper_figures import RECOMPUTED, Published, published_tables
from stream_fs.evaluate.report.parameters import (
    ablation_table,
    judging_table,
    missing_table,
    parameter_table,
    tried_tables,
)
from stream_fs.evaluate.report.results import Cells, comparable
from stream_fs.evaluate.report.synthetic import (
    drift_table,
    planted_in_words,
    recommendation,
    stability_table,
    traits_table,
)


def refused_methods(refused: Sequence[Refused]) -> dict[str, set[str]]:
    """By data set, the methods of the main comparison that refused it in any repetition."""
    found: dict[str, set[str]] = {}
    for of in refused:
        if of.task.experiment == "ranking":
            found.setdefault(of.task.dataset, set()).add(of.task.what)
    return found


def refused_table(refused: Sequence[Refused]) -> Table:
    """A row for every data set and method; of the reasons the first."""
    rows = [
        [
            dataset,
            what,
            ", ".join(dict.fromkeys(of.task.experiment for of in group)),
            group[0].reason,
        ]
        for (dataset, what), group in _groups(refused).items()
    ]
    return Table(
        "What could not be run",
        ["data set", "method or setting", "experiments", "why"],
        rows,
        "A method that refuses a data set has a dash (–) in tables by data set, and where a mean "
        "would include that set. The tables on stability, missing instances and the judge leave "
        "such a data set out.",
    )


def refused_in_words(refused: Sequence[Refused]) -> Iterator[str]:
    """A sentence for every data set."""
    by_set: dict[str, list[str]] = {}
    for dataset, what in _groups(refused):
        by_set.setdefault(dataset, []).append(what)
    for dataset, which in by_set.items():
        yield f"Could not be run on {dataset} (see What was measured): {'; '.join(which)}."


def _groups(refused: Sequence[Refused]) -> dict[tuple[str, str], list[Refused]]:
    """By data set and method; the settings of one parameter grid are one."""
    found: dict[tuple[str, str], list[Refused]] = {}
    for of in refused:
        grid = "parameter" in of.task.settings
        what = f"settings of {of.task.experiment}" if grid else of.task.what
        found.setdefault((of.task.dataset, what), []).append(of)
    return found


Builder: TypeAlias = Callable[[Sequence[Row]], Sequence[Table]]


def other_tables(
    rows: Mapping[str, Sequence[Row]], published: Published
) -> dict[str, Sequence[Table]]:
    """By heading, the tables of every experiment that has rows, which are comparable already."""
    ablation = rows.get("ablation", ())
    printed = "paper, GIMC_FLSD, all shares"
    fixed = "default, both judges, 30 % of features"
    builders: Mapping[str, Mapping[str, Builder]] = {
        "What clustering does not show": {
            "traits": lambda of: [traits_table(of)],
            "stability": lambda of: [stability_table(of)],
            "drift": lambda of: [drift_table(of, ablation)],
        },
        "What an update costs": {
            "speed": lambda of: speed_tables(of, published),
            "convergence": lambda of: [convergence_figures(of)],
        },
        "What parts and settings are worth": {
            "ablation": lambda of: [ablation_table(of)],
            "missing": lambda of: [missing_table(of)],
            "sensitivity": lambda of: [parameter_table(of, fixed, sensitivity.MIDDLE)],
            "grid": lambda of: [parameter_table(of, printed, grid.MIDDLE)],
            "judging": lambda of: [judging_table(of)],
        },
    }
    found = {
        heading: [
            table for name, build in of.items() if rows.get(name) for table in build(rows[name])
        ]
        for heading, of in builders.items()
    }
    merged = [*rows.get("merging", ()), *rows.get("merging-long", ())]
    found["Merging partitions"] = merging_table(merged) if merged else []
    return {heading: tables for heading, tables in found.items() if tables}


WORDS_NOTE = (
    "“default √” is the selector as it comes. √ and ∝ tell how a share of all features is divided "
    "between the views: by √d or proportionally. A figure is the agreement (NMI) of clusters with "
    "classes when only the chosen features are kept, by two judges: gimc (GIMC_FLSD) and spectral "
    "(spectral clustering of the summed graphs)."
)


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
    refused: Sequence[Refused] = (),
) -> list[Section]:
    """Everything that the rows have to say."""
    whole = comparable(rows, refused)
    cells = Cells(rows["ranking"], refused_methods(refused)) if rows.get("ranking") else None
    if cells is not None and not cells.datasets:
        cells = None
    points = [*_in_short(whole, cells, entries, options, progress), *refused_in_words(refused)]
    found = [Section("In short", WORDS_NOTE, points=points)] if points else []
    measured = [_sets(entries), *([refused_table(refused)] if refused else [])]
    found.append(Section("What was measured", _setup_note(options, progress), measured))
    if cells is not None:
        tables = [
            goals_table(find_goals(cells, entries)),
            variance_table(cells, beside_variance(cells, entries)),
        ]
        found.append(Section("Goals", _roles_note(), tables))
        note = _fixed_note(options)
        found.append(Section("Fixed parameters", note, compared_tables(cells, entries)))
    beside = published_tables(published, whole.get("grid", ()), cells)
    if beside:
        found.append(Section("Beside the paper", "", beside))
    others = other_tables(whole, published)
    found += [Section(heading, "", tables) for heading, tables in others.items()]
    tried = tried_tables(whole.get("ablation", ()))
    found.append(Section("What was tried and is not in", "", tried))
    found.append(Section("Methods", _methods_note()))
    return found


def _in_short(
    rows: Mapping[str, Sequence[Row]],
    cells: Cells | None,
    entries: Sequence[Entry],
    options: Options,
    progress: Progress,
) -> Iterator[str]:
    """The findings in plain words."""
    if options.quick:
        yield "A quick run: too few repetitions to conclude anything."
    elif progress.done < progress.planned:
        yield (
            f"Not finished: {progress.done} of {progress.planned} measurements are there. Figures "
            "will change, and only repetitions that every method has are counted."
        )
    if cells is not None:
        yield from in_words(find_goals(cells, entries))
        yield from means_in_words(cells, entries)
        yield variance_in_words(beside_variance(cells, entries))
    if rows.get("traits"):
        yield planted_in_words(rows["traits"])
    if rows.get("drift"):
        yield recommendation(rows["drift"], rows.get("ablation", ()))


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
                _same(entry.name) if entry.role == "development" else "–",
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
    return text


def _roles_note() -> str:
    return (
        f"The paper's data sets ({', '.join(DEVELOPMENT)}) are development data, as the defaults "
        "of the selector were chosen on them. Other sets of the user's directory are the user's "
        "own, and the built-in ones are held out: neither took part in that."
    )


def _fixed_note(options: Options) -> str:
    return (
        f"At {options.missing:.0%} missing instances per view, fixed parameters, two judges on "
        "raw and on scaled features. No label chose anything here but the defaults, which were "
        "chosen on the development data."
    )


def _methods_note() -> str:
    return (
        f"Compared: {', '.join(METHODS)}. Missing from the paper's tables, to be added to the "
        f"registry of methods: {', '.join(MISSING_METHODS)}. Presets paper and classical work on "
        "unit rows. With preset default, views of which at least 80 % of the values are zero are "
        "declared as counts (transform unit), as the documentation advises; all others are left to "
        "the preset. OMVFS has the best of five settings that were tried on four development sets."
    )
