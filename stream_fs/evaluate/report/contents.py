"""The sections of the report, in their order."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from stream_fs.evaluate.methods.registry import METHODS, MISSING_METHODS, RANDOM_DRAWS
from stream_fs.evaluate.plan import (
    DEVELOPMENT,
    LARGE,
    LARGE_REPETITIONS,
    DataSetEntry,
    Row,
    SkippedMeasurement,
)
from stream_fs.evaluate.report import cost, merging, parameters, synthetic
from stream_fs.evaluate.report.goals import (
    compare_with_variance,
    find_goals,
    goal_sentences,
    goals_table,
    variance_sentence,
    variance_table,
)
from stream_fs.evaluate.report.main_comparison import comparison_tables, mean_sentences
from stream_fs.evaluate.report.negative_results import rejected_tables
from stream_fs.evaluate.report.page import PageSection, ReportSection, Table
from stream_fs.evaluate.report.paper_figures import RECOMPUTED, paper_tables
from stream_fs.evaluate.report.results import Comparison, PairedResults, Results

SECTIONS: Sequence[ReportSection] = (
    synthetic.SECTION,
    cost.SECTION,
    parameters.SECTION,
    merging.SECTION,
)


def page_sections(results: Results) -> list[PageSection]:
    """The whole report."""
    results = replace(results, rows=comparable_rows(results))
    paired = _main_comparison(results)
    points = list(_summary(results, paired))
    sections = [PageSection("Summary", SUMMARY_NOTE, points=points)] if points else []
    sections.append(PageSection("Data and protocol", _setup_note(results), _setup_tables(results)))
    if paired is not None:
        tables = [
            goals_table(find_goals(paired, results.entries)),
            variance_table(paired, compare_with_variance(paired, results.entries)),
        ]
        sections.append(PageSection("Goals", _roles_note(), tables))
        tables = comparison_tables(paired, results.entries)
        sections.append(PageSection("Fixed parameters", _fixed_note(results), tables))
    optional = [
        PageSection("Comparison with the paper", tables=paper_tables(results, paired)),
        *(PageSection(part.title, tables=list(part.tables(results))) for part in SECTIONS),
    ]
    sections += [section for section in optional if section.tables]
    rejected = rejected_tables(results.rows_of("ablation"))
    sections.append(PageSection("Rejected changes", tables=rejected))
    sections.append(PageSection("Methods", _methods_note()))
    return sections


def comparable_rows(results: Results) -> dict[str, Sequence[Row]]:
    """By experiment, the rows of completely measured trials, where its tables compare trials."""
    comparisons: dict[str, Comparison] = {}
    for section in SECTIONS:
        comparisons |= section.comparisons
    rows = dict(results.rows)
    for name in comparisons.keys() & rows.keys():
        skipped = [item for item in results.skipped if item.measurement.experiment == name]
        rows[name] = comparisons[name].comparable(rows[name], skipped)
    return rows


def _main_comparison(results: Results) -> PairedResults | None:
    skipped: dict[str, set[str]] = {}
    for item in results.skipped:
        if item.measurement.experiment == "ranking":
            skipped.setdefault(item.measurement.dataset, set()).add(item.measurement.subject)
    paired = PairedResults(results.rows_of("ranking"), skipped)
    return paired if paired.datasets else None


SUMMARY_NOTE = (
    "“default √” is the selector with its defaults. √ and ∝ are the budgets: a share of all "
    "features is divided between the views by √d or proportionally. A figure is the agreement "
    "(NMI) of clusters with classes when only the selected features are kept, by two judges: "
    "gimc (GIMC_FLSD) and spectral (spectral clustering of the summed graphs)."
)


def _summary(results: Results, paired: PairedResults | None) -> Iterator[str]:
    """The findings, one sentence or two each."""
    completion, entries = results.completion, results.entries
    if results.options.quick:
        yield "A quick run: too few repetitions for any conclusion."
    elif completion.done < completion.planned:
        yield (
            f"Not finished: {completion.done} of {completion.planned} measurements have been made. "
            "Figures will change, and only repetitions that every method has are counted."
        )
    if paired is not None:
        yield from goal_sentences(find_goals(paired, entries))
        yield from mean_sentences(paired, entries)
        yield variance_sentence(compare_with_variance(paired, entries))
    if rows := results.rows_of("traits"):
        yield synthetic.traits_sentence(rows)
    if rows := results.rows_of("drift"):
        yield synthetic.decay_sentence(rows, results.rows_of("ablation"))
    yield from skipped_sentences(results.skipped)


def skipped_sentences(skipped: Sequence[SkippedMeasurement]) -> Iterator[str]:
    """One sentence per data set."""
    by_dataset: dict[str, list[str]] = {}
    for dataset, subject in _by_subject(skipped):
        by_dataset.setdefault(dataset, []).append(subject)
    for dataset, subjects in by_dataset.items():
        yield f"Could not be run on {dataset} (see Data and protocol): {'; '.join(subjects)}."


def _by_subject(
    skipped: Sequence[SkippedMeasurement],
) -> Mapping[tuple[str, str], list[SkippedMeasurement]]:
    """By data set and method; the settings of a parameter grid are one subject."""
    groups: dict[tuple[str, str], list[SkippedMeasurement]] = {}
    for item in skipped:
        measurement = item.measurement
        of_grid = "parameter" in measurement.settings
        subject = f"settings of {measurement.experiment}" if of_grid else measurement.subject
        groups.setdefault((measurement.dataset, subject), []).append(item)
    return groups


def _setup_tables(results: Results) -> list[Table]:
    tables = [_dataset_table(results.entries)]
    return [*tables, skipped_table(results.skipped)] if results.skipped else tables


def skipped_table(skipped: Sequence[SkippedMeasurement]) -> Table:
    """A row per data set and method, with the first reason."""
    rows = [
        [
            dataset,
            subject,
            ", ".join(dict.fromkeys(item.measurement.experiment for item in group)),
            group[0].reason,
        ]
        for (dataset, subject), group in _by_subject(skipped).items()
    ]
    return Table(
        "Methods that could not be run",
        ["data set", "method or setting", "experiments", "reason"],
        rows,
        "A method that cannot process a data set has a dash (–) in tables by data set, and where "
        "a mean would include that set. The tables on stability, missing instances and the judge "
        "leave such a data set out.",
    )


def _dataset_table(entries: Sequence[DataSetEntry]) -> Table:
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
                _origin(entry.name) if entry.role == "development" else "–",
            ]
            for entry in entries
        ],
    )


def _origin(name: str) -> str:
    return "no, recomputed" if name in RECOMPUTED else "yes"


def _setup_note(results: Results) -> str:
    options, completion = results.options, results.completion
    text = (
        f"{completion.done} of {completion.planned} measurements have been made. "
        f"{options.repetitions} repetitions (the paper: 30), {LARGE_REPETITIONS} for data sets of "
        f"more than {LARGE} rows; experiments with fewer repetitions or without large data sets "
        f"say so. Removal: {options.masks}. Random selection: {RANDOM_DRAWS} draws per repetition."
    )
    if options.rows is not None:
        text += f" Data sets of more than {options.rows} rows are random samples of that size."
    return text


def _roles_note() -> str:
    return (
        f"The paper's data sets ({', '.join(DEVELOPMENT)}) are development data: the defaults of "
        "the selector were chosen on them. Other data sets in the user's directory are the "
        "user's own, and the built-in ones are held out; the defaults are independent of both."
    )


def _fixed_note(results: Results) -> str:
    return (
        f"At {results.options.missing:.0%} missing instances per view, fixed parameters, two "
        "judges on raw and on scaled features. Labels chose nothing here except the defaults, on "
        "the development data."
    )


def _methods_note() -> str:
    return (
        f"Compared: {', '.join(METHODS)}. Methods of the paper's tables that are not implemented: "
        f"{', '.join(MISSING_METHODS)}. Presets paper and classical use unit rows. With preset "
        "default, views of which at least 80 % of the values are zero are declared as counts "
        "(transform unit), as the documentation advises; the preset chooses the transform of all "
        "others. OMVFS has the best of five settings that were tried on four development sets."
    )
