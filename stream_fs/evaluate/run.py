"""Measure what the store does not have yet."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from threadpoolctl import threadpool_limits

from stream_fs.evaluate.plan import Experiment, Library, Task
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
            experiment = experiments[task.experiment]
            dataset = library.load(task.dataset) if task.dataset else None
            published = None
            if task.settings.get("masks") == "published":
                published = library.published(
                    task.dataset, float(task.settings["missing"]), int(task.settings["repetition"])
                )
            store.add(task, experiment.measure(dataset, dict(task.settings), published))
            yield task
