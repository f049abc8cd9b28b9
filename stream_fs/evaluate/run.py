"""A run: measures what is not in the output directory yet, and writes the report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from threadpoolctl import threadpool_limits

from stream_fs.errors import InvalidChunk
from stream_fs.evaluate.datasets import MASK_SUFFIX
from stream_fs.evaluate.errors import DataNotFound, UnknownExperiment, UnsupportedData
from stream_fs.evaluate.experiments import experiment_names, load_experiment
from stream_fs.evaluate.plan import (
    DataSetCatalog,
    DataSetEntry,
    Experiment,
    Measurement,
    Options,
    Row,
    SyntheticExperiment,
    make_plan,
)
from stream_fs.evaluate.protocol import make_trial
from stream_fs.evaluate.report.contents import page_sections
from stream_fs.evaluate.report.page import render_html, render_markdown
from stream_fs.evaluate.report.paper_figures import TABLES, read_paper_figures
from stream_fs.evaluate.report.results import Completion, Results
from stream_fs.evaluate.store import ResultStore

PAGE = "report.html"
TEXT = "report.md"
QUICK_SETS = ("digits", "breast-cancer")


@dataclass(frozen=True)
class EvaluationRequest:
    """The user's request; empty sets and experiments mean all of them."""

    output: Path
    data: Path | None = None
    sets: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    report_only: bool = False


ProgressDisplay = Callable[[int, int], AbstractContextManager[Callable[[Measurement], None]]]
"""From the numbers of finished and planned measurements, a context whose value is called with every
measurement that is finished."""


def evaluate(request: EvaluationRequest, display: ProgressDisplay) -> Path:
    """Measure what the output directory does not have yet; returns the path of the report."""
    catalog = DataSetCatalog(request.data, request.options.rows)
    entries = [catalog.entry(name) for name in _data_sets(request, catalog)]
    experiments = {name: load_experiment(name) for name in _experiments(request)}
    plan = make_plan(experiments, entries, request.options)
    store = ResultStore(request.output)
    _write_request(request, list(experiments), entries, store)
    if not request.report_only:
        done = sum(measurement in store for measurement in plan)
        with display(done, len(plan)) as advance:
            for measurement in measure_plan(plan, experiments, catalog, store):
                advance(measurement)
    return write_report(store, plan, entries, request.options)


def _experiments(request: EvaluationRequest) -> list[str]:
    names = experiment_names()
    for name in request.experiments:
        if name not in names:
            raise UnknownExperiment(f"no experiment {name}; there are {', '.join(names)}")
    return [name for name in names if name in request.experiments or not request.experiments]


def _data_sets(request: EvaluationRequest, catalog: DataSetCatalog) -> Sequence[str]:
    return request.sets or list(_default_sets(request.options, catalog))


def _default_sets(options: Options, catalog: DataSetCatalog) -> Iterator[str]:
    """All data sets, two in a quick run; with published masks, only those that have them."""
    for name in QUICK_SETS if options.quick else catalog.names():
        if options.masks == "random":
            yield name
        elif catalog.directory is not None:
            if (catalog.directory / f"{name}{MASK_SUFFIX}.npz").is_file():
                yield name
        else:
            raise DataNotFound("published masks need a data directory: name one with --data")


def _write_request(
    request: EvaluationRequest,
    experiments: Sequence[str],
    entries: Sequence[DataSetEntry],
    store: ResultStore,
) -> None:
    store.write_about(
        {
            "options": asdict(request.options),
            "experiments": experiments,
            "sets": [asdict(entry) for entry in entries],
        }
    )
    if request.data is not None and (request.data / TABLES).is_file():
        shutil.copyfile(request.data / TABLES, store.directory / TABLES)


def measure_plan(
    plan: Sequence[Measurement],
    experiments: Mapping[str, Experiment],
    catalog: DataSetCatalog,
    store: ResultStore,
) -> Iterator[Measurement]:
    """Measure what is not in the store, in the order of the plan; yields every measurement made.

    A measurement whose method cannot process the data set is recorded as skipped. Any other error
    ends the run, with a note that names the measurement.

    All runs in one thread: sums are added in the same order on every machine, and times compare.
    """
    with threadpool_limits(limits=1):
        for measurement in plan:
            if measurement in store:
                continue
            with _named_in_errors(measurement):
                try:
                    experiment = experiments[measurement.experiment]
                    store.add(measurement, measure(measurement, experiment, catalog))
                except (InvalidChunk, UnsupportedData) as error:
                    store.skip(measurement, str(error))
            yield measurement


@contextmanager
def _named_in_errors(measurement: Measurement) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"while measuring: {measurement}")
        raise


def measure(measurement: Measurement, experiment: Experiment, catalog: DataSetCatalog) -> list[Row]:
    """The rows of one measurement."""
    settings = dict(measurement.settings)
    if isinstance(experiment, SyntheticExperiment):
        return experiment.measure(settings)
    repetition, missing = int(settings["repetition"]), float(settings["missing"])
    mask = None
    if settings["masks"] == "published":
        mask = catalog.published_mask(measurement.dataset, missing, repetition)
    trial, labels = make_trial(catalog.load(measurement.dataset), repetition, missing, mask)
    return experiment.measure(trial, labels, settings)


def write_report(
    store: ResultStore,
    plan: Sequence[Measurement],
    entries: Sequence[DataSetEntry],
    options: Options,
) -> Path:
    """Write ``report.html``, ``report.md`` and a CSV per experiment; the path of the page."""
    experiments = list(dict.fromkeys(measurement.experiment for measurement in plan))
    for name in experiments:
        store.write_csv(plan, name)
    results = Results(
        rows={name: store.rows(plan, name) for name in experiments},
        entries=entries,
        options=options,
        completion=Completion(sum(measurement in store for measurement in plan), len(plan)),
        paper=read_paper_figures(store.directory),
        skipped=store.skipped(plan),
    )
    sections = page_sections(results)
    page = store.directory / PAGE
    page.write_text(render_html(sections), encoding="utf-8")
    (store.directory / TEXT).write_text(render_markdown(sections), encoding="utf-8")
    return page
