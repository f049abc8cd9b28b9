"""One cell of the experiment: a data set, a removal and a method, judged by every judge."""

import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from stream_fs.evaluate import judges
from stream_fs.evaluate.data import DataSet, IncompleteViews, Labels, Mask, load_set
from stream_fs.evaluate.graphs import view_graphs
from stream_fs.evaluate.metrics import Agreement, agreement
from stream_fs.evaluate.removal import remove_views
from tests.quality.methods import METHODS, Problem
from tests.quality.results import Key, Result

SCALES = {"raw": False, "minmax": True}
JUDGES = tuple(f"{name} {scale}" for name in judges.JUDGES for scale in SCALES)


@dataclass(frozen=True)
class Task:
    """What one process works on at a time, with the judges that still have to look at it."""

    directory: Path
    dataset: str
    removal: int
    missing: float
    method: str
    shares: tuple[float, ...]
    judges: tuple[str, ...]


@dataclass
class Measured:
    """A task's results, and the seconds that its steps took."""

    results: list[Result] = field(default_factory=list)
    seconds: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))

    @contextmanager
    def timed(self, step: str) -> Iterator[None]:
        start = time.perf_counter()
        yield
        self.seconds[step] += time.perf_counter() - start


def measure(task: Task) -> Measured:
    """Select, cluster and compare; one result per judge and share."""
    measured = Measured()
    with measured.timed("load"):
        problem, labels = make_problem(
            load_set(task.directory, task.dataset), task.removal, task.missing
        )
    with measured.timed("select"):
        selections = METHODS[task.method](problem, task.shares)
    for share, draws in selections.items():
        judged = [_judge(problem, labels, masks, task.judges, measured) for masks in draws]
        for judge in task.judges:
            key = Key(task.dataset, task.removal, task.missing, task.method, judge, share)
            measured.results.append(_mean(key, [of[judge] for of in judged]))
    return measured


def make_problem(dataset: DataSet, removal: int, missing: float) -> tuple[Problem, Labels]:
    """Shuffle the rows and take views away; the removal's number is the seed of everything."""
    generator = np.random.default_rng(removal)
    present = remove_views(dataset.instances, len(dataset.views), missing, generator)
    order = generator.permutation(dataset.instances)
    data = IncompleteViews(tuple(x[order] for x in dataset.views), present[order])
    return Problem(data, dataset.classes, removal), dataset.labels[order]


def _judge(
    problem: Problem,
    labels: Labels,
    masks: Sequence[Mask],
    looking: Sequence[str],
    measured: Measured,
) -> dict[str, Agreement]:
    """How the clusters on the selected features agree with the classes, per judge."""
    selected = problem.data.select(masks)
    found: dict[str, Agreement] = {}
    for scale, scaled in SCALES.items():
        wanted = [name for name in judges.JUDGES if f"{name} {scale}" in looking]
        if not wanted:
            continue
        with measured.timed("graphs"):
            views = view_graphs(selected, scaled=scaled)
        for name in wanted:
            with measured.timed(name):
                clusters = judges.JUDGES[name](views, len(labels), problem.clusters, problem.seed)
            found[f"{name} {scale}"] = agreement(labels, clusters)
    return found


def _mean(key: Key, values: Sequence[Agreement]) -> Result:
    return Result(
        key,
        nmi=float(np.mean([value.nmi for value in values])),
        ari=float(np.mean([value.ari for value in values])),
        f=float(np.mean([value.f for value in values])),
    )
