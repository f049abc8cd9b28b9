"""Processes killed at every step of a commit and at random, replaced, and shut down."""

from __future__ import annotations

import random
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stream_fs.broker import running_broker
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.support.recovery.comparison import Published
from tests.support.recovery.crashes import (
    CRASH_MATRIX,
    CrashPoint,
    kill_at,
    kill_at_random,
    kill_during_shutdown,
    replace_stopped_process,
    stop_repeatedly,
)
from tests.support.recovery.launchers import Spawned
from tests.support.recovery.prepared_stream import PreparedStream, prepare_stream
from tests.support.recovery.stream_run import StreamRun
from tests.support.recovery.subscriber import problems

STOP_CHUNKS = 6
"""Between graceful shutdowns: no multiple of the chunks between snapshots."""


class Fault(NamedTuple):
    """A fault that is injected into a run, and how often."""

    name: str
    times: int
    inject: Callable[[StreamRun], None]


def kill_repeatedly(stream_run: StreamRun, point: CrashPoint, times: int) -> None:
    committed = 0
    for _ in range(times):
        committed = kill_at(stream_run, point, committed)


def replace_stopped_processes(stream_run: StreamRun, times: int) -> None:
    for _ in range(times):
        replace_stopped_process(stream_run)


def faults(options: Namespace) -> Iterator[Fault]:
    """All faults; the random ones follow from the seed."""
    chance = random.Random(options.seed)
    for point in CRASH_MATRIX:
        inject = partial(kill_repeatedly, point=point, times=options.rounds)
        yield Fault(f"SIGKILL when {point}", options.rounds, inject)
    few = max(1, options.kills // 5)
    at_random = partial(kill_at_random, kills=options.kills, chance=chance)
    yield Fault("SIGKILL at random", options.kills, at_random)
    during_shutdown = partial(kill_during_shutdown, times=few, chance=chance)
    yield Fault("SIGKILL during shutdown", few, during_shutdown)
    yield Fault("SIGSTOP, replaced, SIGCONT", few, partial(replace_stopped_processes, times=few))
    yield Fault("SIGTERM", few, partial(stop_repeatedly, times=few, chunks=STOP_CHUNKS))


def run_fault(prepared: PreparedStream, fault: Fault, number: int) -> FaultResult:
    """Inject a fault into one run, and compare it with the undisturbed one."""
    with prepared.new_run(f"fault-{number}") as stream_run:
        try:
            fault.inject(stream_run)
            found = stream_run.complete()
            wrong = problems(message.value for message in found.rankings)
        except (AssertionError, TimeoutError) as error:
            found = Published(stream_run.rankings.messages, stream_run.letters.messages)
            wrong = [str(error)]
    rankings, letters = found.against(prepared.expected)
    return FaultResult(fault.name, fault.times, rankings, letters, problems=tuple(wrong))


def run(options: Namespace) -> Iterator[FaultResult]:
    """One run for every fault, each against an undisturbed one."""
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-recovery-") as folder,
        running_broker() as broker,
        prepare_stream(broker, Path(folder), options.chunks, Spawned) as prepared,
    ):
        for number, fault in enumerate(faults(options)):
            yield run_fault(prepared, fault, number)


def arguments(add: AddArgument) -> None:
    add("--kills", type=int, default=25, help="SIGKILLs at random moments")
    add("--rounds", type=int, default=3, help="SIGKILLs at every fault point")
    add("--chunks", type=int, default=200, help="chunks in the stream")
