"""A whole evaluation: plan, measure what is missing, write the report."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import asdict, dataclass, field
from pathlib import Path

from stream_fs.evaluate.data import MASK_SUFFIX
from stream_fs.evaluate.errors import DataNotFound, UnknownName
from stream_fs.evaluate.experiments import EXPERIMENTS
from stream_fs.evaluate.plan import Entry, Library, Options, Task, make_plan
from stream_fs.evaluate.report.published import TABLES
from stream_fs.evaluate.report.writing import write_report
from stream_fs.evaluate.run import measure_missing
from stream_fs.evaluate.store import Store

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


Meter = Callable[[int, int], AbstractContextManager[Callable[[Task], None]]]
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
