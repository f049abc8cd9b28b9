"""Measure what the store does not have yet."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from threadpoolctl import threadpool_limits

from stream_fs.errors import InvalidChunk
from stream_fs.evaluate.datasets import MASK_SUFFIX
from stream_fs.evaluate.errors import DataNotFound, MethodRefused, UnknownName
from stream_fs.evaluate.experiments import EXPERIMENTS
from stream_fs.evaluate.plan import (
    Entry,
    Experiment,
    Library,
    Measurement,
    OnMade,
    Options,
    Row,
    make_plan,
)
from stream_fs.evaluate.protocol import make_problem
from stream_fs.evaluate.report.contents import Progress, sections
from stream_fs.evaluate.report.page import html, markdown
from stream_fs.evaluate.report.paper_figures import TABLES, read_published
from stream_fs.evaluate.store import Store

PAGE = "report.html"
TEXT = "report.md"


def write_report(
    store: Store, tasks: Sequence[Measurement], entries: Sequence[Entry], options: Options
) -> Path:
    """``report.html``, ``report.md`` and a CSV per experiment; the path of the page."""
    for name in EXPERIMENTS:
        store.write_csv(tasks, name)
    rows = {name: store.rows(tasks, name) for name in EXPERIMENTS}
    progress = Progress(sum(task in store for task in tasks), len(tasks))
    published = read_published(store.directory)
    found = sections(rows, entries, options, published, progress, store.refused(tasks))
    page = store.directory / PAGE
    page.write_text(html(found), encoding="utf-8")
    (store.directory / TEXT).write_text(markdown(found), encoding="utf-8")
    return page


def measure_missing(
    tasks: Sequence[Measurement],
    experiments: Mapping[str, Experiment],
    library: Library,
    store: Store,
) -> Iterator[Measurement]:
    """Measure the tasks that are not in the store, one after the other; yields each when done.

    A method that refuses the data set is noted in the store, and the run continues. Any other error
    ends it, with a note that says what was being measured.
    One thread: sums are added in the same order on every machine, and times compare.
    """
    with threadpool_limits(limits=1):
        for task in tasks:
            if task in store:
                continue
            with _named(task):
                try:
                    store.add(task, measure(task, experiments[task.experiment], library))
                except (InvalidChunk, MethodRefused) as error:
                    store.refuse(task, str(error))
            yield task


@contextmanager
def _named(task: Measurement) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"it was measuring {task}")
        raise


def measure(task: Measurement, experiment: Experiment, library: Library) -> list[Row]:
    """The rows of one task."""
    settings = dict(task.settings)
    if isinstance(experiment, OnMade):
        return experiment.measure(settings)
    repetition, missing = int(settings["repetition"]), float(settings["missing"])
    published = None
    if settings["masks"] == "published":
        published = library.published(task.dataset, missing, repetition)
    problem, labels = make_problem(library.load(task.dataset), repetition, missing, published)
    return experiment.measure(problem, labels, settings)


QUICK_SETS = ("digits", "breast-cancer")


@dataclass(frozen=True)
class Request:
    """What the user asks for."""

    output: Path
    data: Path | None = None
    sets: tuple[str, ...] = ()
    experiments: tuple[str, ...] = ()
    options: Options = field(default_factory=Options)
    report_only: bool = False


Meter = Callable[[int, int], AbstractContextManager[Callable[[Measurement], None]]]
"""Given the tasks done and planned, a context that is told of every task that is finished."""


def evaluate(request: Request, meter: Meter) -> Path:
    """Measure what the output directory does not have yet; the path of the report."""
    library = Library(request.data, request.options.rows)
    entries = _entries(request, library)
    tasks = make_plan([EXPERIMENTS[name] for name in _chosen(request)], entries, request.options)
    store = Store(request.output)
    _remember(request, entries, store)
    if not request.report_only:
        done = sum(task in store for task in tasks)
        with meter(done, len(tasks)) as advance:
            for task in measure_missing(tasks, EXPERIMENTS, library, store):
                advance(task)
    return write_report(store, tasks, entries, request.options)


def _chosen(request: Request) -> Sequence[str]:
    names = request.experiments or tuple(EXPERIMENTS)
    for name in names:
        if name not in EXPERIMENTS:
            raise UnknownName(f"no experiment {name}; there are {', '.join(EXPERIMENTS)}")
    return [name for name in EXPERIMENTS if name in names]


def _entries(request: Request, library: Library) -> list[Entry]:
    names = request.sets or tuple(_default_sets(request, library))
    return [library.entry(name) for name in names]


def _default_sets(request: Request, library: Library) -> Iterator[str]:
    """All there are; two for a quick run; with published masks, those that have any."""
    for name in QUICK_SETS if request.options.quick else library.names():
        if request.options.masks == "random":
            yield name
        elif library.directory is not None:
            if (library.directory / f"{name}{MASK_SUFFIX}.npz").is_file():
                yield name
        else:
            raise DataNotFound("published masks need a data directory: name one with --data")


def _remember(request: Request, entries: Sequence[Entry], store: Store) -> None:
    store.write_about(
        {
            "options": asdict(request.options),
            "experiments": list(_chosen(request)),
            "sets": [asdict(entry) for entry in entries],
        }
    )
    if request.data is not None and (request.data / TABLES).is_file():
        shutil.copyfile(request.data / TABLES, store.directory / TABLES)
