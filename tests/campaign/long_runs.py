"""Resources of a process over a long run and with many partitions; series after a rebalance.

``python -m tests.campaign.long_runs --chunks 2000 --tasks 1 16 64``: prints tables; exit code 1
when memory, threads, open files or metric series have grown.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from stream_fs.broker import Broker, running_broker
from tests.campaign.resource_usage import Flatness, Usage, lasting, series, usage
from tests.support.markdown_table import aligned
from tests.support.recovery.content import CHUNK, SNAPSHOT_EVERY, Content, Source, records_for
from tests.support.recovery.launchers import Spawned
from tests.support.recovery.service_process import ServiceProcess
from tests.support.recovery.stream_run import StreamRun
from tests.support.topics import Topics

MOST_GROWTH = 4.0
"""Megabytes from the second quarter to the last one."""
SAMPLES = 80
QUICK_HEARTBEAT = '"heartbeat.interval.ms" = 500'
"""Properties of dynamic members that notice a rebalance soon."""


def measure_long_run(broker: Broker, folder: Path, chunks: int, samples: int = SAMPLES) -> Flatness:
    """Sample one process over so many chunks, which are written as it advances."""
    topics = Topics(broker.bootstrap)
    topic = topics.create("endurance")
    source = Source(broker.bootstrap, topic)
    taken = []
    try:
        with StreamRun(
            broker.bootstrap, Content(topic, chunks), folder, "long", Spawned
        ) as stream_run:
            process = stream_run.start()
            done = 0
            for number in range(1, samples + 1):
                goal = number * chunks // samples
                source.write(records_for(goal) - (records_for(done) if done else 0))
                done = goal
                stream_run.reach(process, goal)
                taken.append(usage(process.pid))
            process.stop()
    finally:
        topics.remove()
    return Flatness(taken)


def flatness_table(found: Flatness, chunks: int) -> list[str]:
    """A table by quarter, and the growth from the second to the last."""
    rows = []
    for number in range(4):
        quarter = found.quarter(number)
        memory = [sample.megabytes for sample in quarter]
        rows.append(
            [
                f"{number * chunks // 4}–{(number + 1) * chunks // 4}",
                f"{median(memory):.1f}",
                f"{min(memory):.1f}–{max(memory):.1f}",
                _range([sample.threads for sample in quarter]),
                _range([sample.files for sample in quarter]),
            ]
        )
    slope = found.slope * len(found.samples) / chunks * 1000
    return [
        *aligned(["chunks", "MB, median", "MB", "threads", "open files"], rows),
        "",
        f"growth {found.growth:+.2f} MB, spread {found.spread:.2f} MB, "
        f"slope {slope:+.2f} MB in 1000 chunks (without the first quarter)",
    ]


class Series(NamedTuple):
    """The series of a process that has two partitions, shares them, and has both again."""

    alone: list[str]
    shared: list[str]
    again: list[str]


def measure_rebalance(broker: Broker, folder: Path) -> Series:
    """Another member joins and leaves; each time every partition writes a snapshot."""
    address = broker.bootstrap
    topics = Topics(address)
    topic = topics.create("rebalance", partitions=2)
    sources = [Source(address, topic, number, clean=True) for number in range(2)]
    content = Content(topic, chunks=0)
    worked = 0

    def work() -> None:
        nonlocal worked
        more = SNAPSHOT_EVERY + 1
        for source in sources:
            source.write(CHUNK * more if worked else records_for(more))
        worked += 2 * more
        stream_run.reach(first, worked)

    try:
        with StreamRun(address, content, folder, "shared", Spawned, QUICK_HEARTBEAT) as stream_run:
            first = stream_run.start()
            work()
            alone = _series_of(first, partitions=2)
            second = stream_run.start()
            first.until(lambda: bool(first.log("partition released")), "a release")
            work()
            shared = _series_of(first, partitions=1)
            second.stop()
            work()
            again = _series_of(first, partitions=2)
            first.stop()
    finally:
        topics.remove()
    return Series(alone, shared, again)


def _series_of(process: ServiceProcess, partitions: int) -> list[str]:
    """All series, once each of so many partitions has its lag, which is measured now and then."""

    def has_lag() -> bool:
        return sum(name.startswith("stream_fs_lag") for name in series(process)) == partitions

    process.until(has_lag, f"the lag of {partitions} partitions")
    return series(process)


def measure_partitions(broker: Broker, folder: Path, count: int) -> Usage:
    """One process with so many partitions, each of which has published two rankings."""
    topics = Topics(broker.bootstrap)
    topic = topics.create("tasks", partitions=count)
    try:
        for number in range(count):
            Source(broker.bootstrap, topic, number, clean=True).write(records_for(2))
        with StreamRun(
            broker.bootstrap, Content(topic, 2 * count), folder, f"tasks-{count}", Spawned
        ) as stream_run:
            process = stream_run.start()
            stream_run.reach(process, 2 * count)
            found = usage(process.pid)
            process.stop()
    finally:
        topics.remove()
    return found


def tasks_table(found: dict[int, Usage]) -> list[str]:
    """A table by number of partitions."""
    rows = [
        [str(count), f"{used.megabytes:.0f}", str(used.threads), str(used.files)]
        for count, used in found.items()
    ]
    return aligned(["tasks", "MB", "threads", "open files"], rows)


def _range(values: Sequence[int]) -> str:
    least, most = min(values), max(values)
    return str(least) if least == most else f"{least}–{most}"


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.campaign.long_runs", description=__doc__)
    parser.add_argument("--chunks", type=int, default=2000)
    parser.add_argument("--tasks", type=int, nargs="+", default=[1, 16, 64])
    options = parser.parse_args()
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-endurance-") as name,
        running_broker() as broker,
    ):
        folder = Path(name)
        flat = measure_long_run(broker, folder, options.chunks)
        print("\n".join(flatness_table(flat, options.chunks)), flush=True)
        alone, shared, again = map(len, map(lasting, measure_rebalance(broker, folder)))
        print(
            f"\nmetric series but for outcomes: {alone} alone, {shared} shared, "
            f"{again} alone again\n"
        )
        used = {
            count: measure_partitions(broker, folder, count) for count in options.measure_partitions
        }
        print("\n".join(tasks_table(used)))
    grown = flat.growth > MOST_GROWTH or flat.more_threads > 0 or flat.more_files > 0
    return 1 if grown or again != alone else 0


if __name__ == "__main__":
    sys.exit(main())
