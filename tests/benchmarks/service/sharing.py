"""Two processes on two partitions against one process on both."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from functools import partial

from tests.benchmarks.measure import Comparison, Goal
from tests.benchmarks.service.input_topics import Source, Stage
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.reading import CHUNK
from tests.benchmarks.service.records import Mix
from tests.benchmarks.service.service_process import COMMITTED, Life, await_all

PARTITIONS = 2
FASTER = Goal("≥", 1.5)


def sharing(stage: Stage, plan: Plan) -> Iterator[Comparison]:
    """The same records, filled in before, at the pace while all processes are at work."""
    mix = Mix.of_bytes(plan.ingest[-1][0])
    with stage.source(mix, (1 + plan.shared_chunks) * CHUNK, PARTITIONS) as source:
        taken = plan.turns_of(
            {
                "one process": partial(_shared, stage, source, 1),
                "two processes": partial(_shared, stage, source, 2),
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


def _shared(stage: Stage, source: Source, processes: int) -> float:
    """Seconds of a chunk, while every process has a partition and every partition has records."""
    with stage.stream(source) as stream, ExitStack() as stack:
        lives = [stack.enter_context(Life(stream)) for _ in range(processes)]
        await_all(lives, COMMITTED, PARTITIONS * stream.chunks)
        return pace([life.commits() for life in lives])


def pace(lives: list[list[tuple[float, int]]]) -> float:
    """Seconds of a commit in the time in which no process and no partition was without work.

    `lives` are the commits of each process: when, and of which partition. A process that never
    came to work at all has had nothing to share: its others were alone.
    """
    working = [commits for commits in lives if commits]
    moments = [at for commits in working for at, _ in commits]
    last: dict[int, float] = {}
    for commits in working:
        for at, partition in commits:
            last[partition] = max(at, last.get(partition, at))
    begin, end = max(commits[0][0] for commits in working), min(last.values())
    within = sum(begin < at <= end for at in moments)
    if len(working) < len(lives) or not within:
        begin, end, within = min(moments), max(moments), len(moments) - 1
    return (end - begin) / within
