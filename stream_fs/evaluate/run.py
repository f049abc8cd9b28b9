"""Measure what the store does not have yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from threadpoolctl import threadpool_limits

from stream_fs.errors import InvalidChunk
from stream_fs.evaluate.errors import MethodRefused
from stream_fs.evaluate.plan import Experiment, Library, OnMade, Row, Task
from stream_fs.evaluate.problem import make_problem
from stream_fs.evaluate.store import Store


def measure_missing(
    tasks: Sequence[Task],
    experiments: Mapping[str, Experiment],
    library: Library,
    store: Store,
) -> Iterator[Task]:
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
def _named(task: Task) -> Iterator[None]:
    try:
        yield
    except Exception as error:
        error.add_note(f"it was measuring {task}")
        raise


def measure(task: Task, experiment: Experiment, library: Library) -> list[Row]:
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
