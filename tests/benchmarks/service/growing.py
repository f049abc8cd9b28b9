"""How time and memory of the service grow with each size, the others constant.

Seconds are the processor time of the process, all of its threads, for one chunk behind the first;
memory is the peak beyond what the process has before it holds a partition.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from tests.benchmarks.growth import LINEAR, Growth, Point
from tests.benchmarks.measure import Goal
from tests.benchmarks.service.input_topics import Settings, Source, Workspace
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.records import Mix
from tests.benchmarks.service.service_process import COMMITTED, ServiceProcess

BASE = Mix(dimension=250, views=3)
NON_ZEROS = 100
"""In a record of a wide stream."""
TOP = {"top": 20}
"""Of the output, where all features of a wide stream would not fit into a message."""
NO_LINGER = {"linger_seconds": 0.0}
"""Of the output: a transaction for every chunk, so that the log has the time of each."""
ITERATIONS = 20
"""Of every update: by default the number depends on the data, which is not what is varied."""
MOST = 4
"""Times as many chunks where they are small, as the processor time has a coarse clock."""


@dataclass(frozen=True)
class Size:
    """A stream at one value of what is varied; `count` is what growth is measured in."""

    value: float
    count: float
    mix: Mix = BASE
    clusters: int = 10
    chunk: int = 500
    partitions: int = 1
    output: dict[str, Any] = field(default_factory=dict)

    @property
    def settings(self) -> Settings:
        return {
            "selector": {
                "clusters": self.clusters,
                "min_iterations": ITERATIONS,
                "max_iterations": ITERATIONS,
            },
            "chunk": {"records": self.chunk},
            "output": {**NO_LINGER, **self.output},
        }

    def records(self, chunks: int) -> int:
        """Of each partition, for the first chunk and at least so many more."""
        values = self.mix.views * self.mix.dimension * self.chunk * self.partitions
        usual = BASE.views * BASE.dimension * 500
        often = min(max(round(2 * usual / values), 1), MOST)
        return max(self.chunk, 20 * self.clusters) + often * chunks * self.chunk


@dataclass(frozen=True)
class Sweep:
    """Sizes of one kind, and what is `held` meanwhile."""

    name: str
    unit: str
    held: str
    sizes: Sequence[Size]
    goal: Goal | None = None


def growing(workspace: Workspace, plan: Plan) -> Iterator[Growth]:
    """Every size in turn, a process for each, and all of a sweep within each turn."""
    for sweep in sweeps(plan.growth_scale, plan.growth_length):
        if not sweep.name.startswith(plan.growth_sweeps or ""):
            continue
        with ExitStack() as stack:
            runs = []
            for size in sweep.sizes:
                records = size.records(plan.growth_chunks)
                source = stack.enter_context(workspace.source(size.mix, records, size.partitions))
                runs.append(partial(_served, workspace, source, size))
            points = tuple(map(middle, interleaved(runs, plan.growth_turns)))
        yield Growth(sweep.name, sweep.unit, sweep.held, points, sweep.goal)


def interleaved(runs: Sequence[Callable[[], Point]], turns: int) -> list[list[Point]]:
    """The points of each run, which take turns; the first one rotates."""
    found: list[list[Point]] = [[] for _ in runs]
    for turn in range(turns):
        for number in range(len(runs)):
            place = (turn + number) % len(runs)
            found[place].append(runs[place]())
    return found


def _served(workspace: Workspace, source: Source, size: Size) -> Point:
    """One process, from the first commit of every partition to the last."""
    with workspace.stream(source, size.settings) as stream, ServiceProcess(stream) as process:
        process.wait_for("listening", 1)
        idle = process.memory("VmRSS")
        commits = process.wait_for(COMMITTED, size.partitions * stream.chunks)
        begin, end = commits[size.partitions - 1], commits[-1]
        chunks = len(commits) - size.partitions
        spent = process.spent_at(end) - process.spent_at(begin)
        return Point(
            size.value,
            size.count,
            # Of a chunk in every partition.
            max(spent, 1e-3) / chunks * size.partitions,
            max(process.memory("VmHWM") - idle, 1),
            chunks * size.chunk / max(end - begin, 1e-3),
        )


def middle(points: Sequence[Point]) -> Point:
    """The median of each figure over the turns."""
    return dataclasses.replace(
        points[0],
        seconds=float(np.median([point.seconds for point in points])),
        bytes=int(np.median([point.bytes for point in points])),
        rate=float(np.median([point.rate for point in points])),
    )


def sweeps(scale: float, length: int) -> list[Sweep]:
    """All sizes, around `BASE`; `scale` shrinks the ranges, `length` thins them out."""

    def spread(make: Callable[[float], Size], *values: float) -> list[Size]:
        places = np.linspace(0, len(values) - 1, min(length, len(values))).round().astype(int)
        return [make(values[place]) for place in places]

    def scaled(value: float, least: int = 4) -> int:
        return max(round(value * scale), least)

    def mix(dimension: float, views: int = 3, **more: float) -> Mix:
        return Mix(scaled(dimension), views, **more)

    def wide(dimension: float) -> Mix:
        width = scaled(dimension, 200)
        return Mix(width, 1, density=min(NON_ZEROS / width, 0.5))

    base, chunk = mix(BASE.dimension), scaled(500, 50)
    held = f"{base}, K 10, N {chunk}"

    def size(value: float, count: float, mix: Mix = base, *, K: int = 10, N: int = chunk,
             tasks: int = 1, top: bool = False) -> Size:  # fmt: skip
        return Size(value, count, mix, K, N, tasks, TOP if top else {})

    return [
        Sweep(
            "features of each of 3 views (and record size)", "feature", f"K 10, N {chunk}",
            spread(lambda d: size(scaled(d), 3 * scaled(d), mix(d)), 80, 320, 1280, 5120),
            LINEAR,
        ),
        Sweep(
            "views, the same d in each", "view", f"d {base.dimension}, K 10, N {chunk}",
            spread(lambda v: size(v, v, mix(BASE.dimension, int(v))), 1, 2, 4, 8),
            LINEAR,
        ),
        Sweep(
            "K, clusters", "cluster", f"{base}, N {chunk}",
            spread(lambda k: size(k, k, K=int(k)), 5, 10, 20, 40),
        ),
        Sweep(
            "N, records of a chunk", "record", f"{base}, K 10",
            spread(lambda n: size(scaled(n, 20), scaled(n, 20), N=scaled(n, 20)),
                   250, 500, 1000, 2000),
            LINEAR,
        ),
        Sweep(
            "missing share", "present row", held,
            spread(lambda m: size(m, 3 * (1 - m) * chunk, mix(BASE.dimension, missing=m)),
                   0.0, 0.2, 0.4, 0.6),
            LINEAR,
        ),
        Sweep(
            "density of sparse pairs", "non-zero", f"3 views of {scaled(4000)}, K 10, N {chunk}",
            spread(lambda q: size(q, q * 3 * scaled(4000) * chunk,
                                  mix(4000, density=q), top=True), 0.003, 0.01, 0.03, 0.1),
            LINEAR,
        ),
        Sweep(
            f"features with {NON_ZEROS} non-zeros in a record: the state", "feature",
            f"one view, K 10, N {chunk}",
            spread(lambda d: size(scaled(d, 200), scaled(d, 200), wide(d), top=True),
                   2_000, 8_000, 32_000, 100_000),
            LINEAR,
        ),
        Sweep(
            "tasks in a process, a chunk of each", "task", held,
            spread(lambda p: size(p, p, tasks=int(p)), 1, 2, 4, 16),
            LINEAR,
        ),
    ]  # fmt: skip
