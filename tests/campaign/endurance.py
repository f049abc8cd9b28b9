"""A long run, many partitions, and a rebalance: the process does not grow."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from stream_fs.broker import Broker, running_broker
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.campaign.long_runs import (
    MOST_GROWTH,
    measure_long_run,
    measure_partitions,
    measure_rebalance,
)
from tests.campaign.resource_usage import Usage, lasting

TASKS = (1, 16, 64)


def long_run(broker: Broker, folder: Path, chunks: int) -> FaultResult:
    """The result of one process over so many chunks."""
    found = measure_long_run(broker, folder, chunks)
    first, end = found.samples[0], found.samples[-1]
    shown = (
        f"{end.megabytes:.0f} MB ({found.growth:+.1f}), {end.threads} threads "
        f"({found.more_threads:+d}), {end.files} files ({found.more_files:+d})"
    )
    grown = found.growth > MOST_GROWTH or found.more_threads > 0 or found.more_files > 0
    wrong = (f"grown from {first} to {end}",) if grown else ()
    return FaultResult("none: a long run", chunks, shown=shown, problems=wrong)


def come_and_go(broker: Broker, folder: Path) -> FaultResult:
    """The result of a second member that joins and leaves."""
    found = measure_rebalance(broker, folder)
    alone, shared, again = map(len, map(lasting, found))
    shown = f"metric series but for outcomes: {alone} alone, {shared} shared, {again} alone again"
    same = lasting(found.alone) == lasting(found.again) > lasting(found.shared)
    wrong = () if same else ("series are left, or missing",)
    return FaultResult("a member comes and goes", 1, shown=shown, problems=wrong)


def many(broker: Broker, folder: Path, count: int) -> FaultResult:
    """The result of one process with so many partitions."""
    used, most = measure_partitions(broker, folder, count), limit(count)
    shown = (
        f"{used.megabytes:.0f} MB of at most {most.megabytes:.0f}, {used.threads} threads of "
        f"{most.threads}, {used.files} files of {most.files}"
    )
    fields = zip(used._fields, used, most, strict=True)
    wrong = [
        f"{found:.0f} {name}, not {bound:.0f}" for name, found, bound in fields if found > bound
    ]
    return FaultResult(f"none: {count} partitions", 1, shown=shown, problems=tuple(wrong))


def limit(partitions: int) -> Usage:
    """The resources in deploy/sizing.md for so many partitions with small models.

    Memory times 1.5, as for the limit of a container; threads also for transactions, of which each
    partition has one at a time, and a dozen temporary connections.
    """
    return Usage(1.5 * (100 + 0.6 * partitions), 15 + 5 * partitions + 8, 30 + 8 * partitions)


def run(options: Namespace) -> Iterator[FaultResult]:
    """One after the other."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-endurance-") as name,
        running_broker() as broker,
    ):
        folder = Path(name)
        yield long_run(broker, folder, options.endurance_chunks)
        yield come_and_go(broker, folder)
        for count in TASKS:
            yield many(broker, folder, count)


def arguments(add: AddArgument) -> None:
    add("--endurance-chunks", type=int, default=2000, help="chunks of a process without a fault")
