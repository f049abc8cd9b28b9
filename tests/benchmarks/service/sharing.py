"""Two processes on two partitions against one process on both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from tests.benchmarks.measure import Comparison, Goal
from tests.benchmarks.service.input_topics import Source, Workspace
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.reading import CHUNK
from tests.benchmarks.service.records import Mix
from tests.benchmarks.service.service_process import COMMITTED, ServiceProcess, await_all

PARTITIONS = 2
FASTER = Goal("≥", 1.5)


def sharing(workspace: Workspace, plan: Plan) -> Iterator[Comparison]:
    """The same records, written before, at the pace while all processes are running."""
    mix = Mix.of_bytes(plan.ingest[-1][0])
    with workspace.source(mix, (1 + plan.shared_chunks) * CHUNK, PARTITIONS) as source:
        taken = plan.turns_of(
            {
                "one process": partial(_shared, workspace, source, 1),
                "two processes": partial(_shared, workspace, source, 2),
            },
        )
    yield Comparison(
        "sharing",
        "two processes against one",
        f"{PARTITIONS} partitions, {source.record_bytes / 1000:.1f} kB, {mix}, K 10",
        "one process",
        "two processes",
        taken["one process"],
        taken["two processes"],
        FASTER,
        CHUNK,
    )


def _shared(workspace: Workspace, source: Source, processes: int) -> float:
    """Seconds of a chunk, while every process has a partition and every partition has records."""
    with workspace.stream(source) as stream, ExitStack() as stack:
        started = [stack.enter_context(ServiceProcess(stream)) for _ in range(processes)]
        await_all(started, COMMITTED, PARTITIONS * stream.chunks)
        return pace([process.commits() for process in started])


def pace(processes: list[list[tuple[float, int]]]) -> float:
    """Seconds of a commit in the time in which no process and no partition was idle.

    `processes` are the commits of each process: time and partition. A process without any commit
    shared nothing: then all commits count.
    """
    working = [commits for commits in processes if commits]
    moments = [at for commits in working for at, _ in commits]
    last: dict[int, float] = {}
    for commits in working:
        for at, partition in commits:
            last[partition] = max(at, last.get(partition, at))
    begin, end = max(commits[0][0] for commits in working), min(last.values())
    within = sum(begin < at <= end for at in moments)
    if len(working) < len(processes) or not within:
        begin, end, within = min(moments), max(moments), len(moments) - 1
    return (end - begin) / within
