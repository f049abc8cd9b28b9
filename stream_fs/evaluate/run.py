"""Measure what the store does not have yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from threadpoolctl import threadpool_limits

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

    One thread: sums are added in the same order on every machine, and times compare.
    """
    with threadpool_limits(limits=1):
        for task in tasks:
            if task in store:
                continue
            store.add(task, measure(task, experiments[task.experiment], library))
            yield task


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
