"""The service with a fault: ``python -m tests.support.recovery.faulty_service --config FILE``.

The real service; its crash hook injects the fault. With `--fault-at STEP:N`, a fault (SIGKILL by
default) occurs at the N-th occurrence of a step of a commit or merge. With `--stop-rounds`, the
process stops at every step of a commit in turn.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple, get_args

from stream_fs.errors import StreamFsError
from stream_fs.service.configuration import load
from stream_fs.service.exit_codes import exit_code
from stream_fs.service.process.signals import SignalHandler
from stream_fs.service.run import run
from tests.support.recovery.process_faults import (
    FaultKind,
    inject,
    jumping_clock,
    slow_updates,
    stop_self,
)

STEPS = ("updated", "begun", "snapshot sent", "records sent", "committed", "advised")
"""The steps of a commit, in their order; the third one only where a snapshot is due."""
STOPPED_AT = "stopped at "
"""Logged before the name of the step."""
MERGE_STEPS = ("merge begun", "merge sent", "merge committed")
"""The steps of publishing a merged ranking."""

_PR_SET_PDEATHSIG = 1


class FaultPoint(NamedTuple):
    """The N-th occurrence of a step in a process."""

    step: str
    occurrence: int

    @classmethod
    def parse(cls, text: str) -> FaultPoint:
        step, _, occurrence = text.rpartition(":")
        steps = (*STEPS, *MERGE_STEPS)
        if step not in steps or not occurrence.isdecimal() or int(occurrence) < 1:
            raise argparse.ArgumentTypeError(f"should be STEP:N, with a step of {steps}")
        return cls(step, int(occurrence))

    def __str__(self) -> str:
        return f"{self.step}:{self.occurrence}"


def hook(
    fault_point: FaultPoint | None, kind: FaultKind, faults: Sequence[Callable[[str], None]]
) -> Callable[[str], None]:
    """A crash hook that injects one fault at a point, and calls all `faults` at every step."""
    seen: Counter[str] = Counter()

    def step(name: str) -> None:
        if name not in (*STEPS, *MERGE_STEPS):
            raise ValueError(f"unknown step {name!r}")
        seen[name] += 1
        for fault in faults:
            fault(name)
        if fault_point == (name, seen[name]):
            inject(kind)

    return step


def stop_at_every_step(rounds: int) -> Callable[[str], None]:
    """A crash hook that stops this process so many times at each step, until SIGCONT.

    Always at the step with the fewest stops, so that it does not matter which steps are repeated.
    """
    stops_by_step = dict.fromkeys(STEPS, 0)
    since = 0

    def step(name: str) -> None:
        nonlocal since
        since += 1
        times = stops_by_step.get(name, rounds)
        if since > len(STEPS) and times < rounds and times == min(stops_by_step.values()):
            stops_by_step[name] += 1
            since = 0
            print(f"{STOPPED_AT}{name}", file=sys.stderr, flush=True)
            stop_self()

    return step


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.recovery.faulty_service", description=__doc__
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    parser.add_argument("--fault-at", type=FaultPoint.parse, metavar="STEP:N")
    parser.add_argument("--fault", choices=get_args(FaultKind), default="KILL")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--slow", type=float, metavar="SECONDS", help="added to every update")
    parser.add_argument(
        "--stop-rounds", type=int, metavar="ROUNDS", help="stops at every step of a commit in turn"
    )
    parser.add_argument(
        "--clock", type=float, metavar="SECONDS", help="by which the clock jumps, there and back"
    )
    options = parser.parse_args(arguments)
    if sys.platform.startswith("linux"):
        # The process is killed together with its parent.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    faulthandler.register(signal.SIGUSR1)  # prints the stack of every thread
    faults: list[Callable[[str], None]] = []
    if options.slow is not None:
        faults.append(slow_updates(options.slow))
    if options.clock is not None:
        faults.append(jumping_clock(options.clock))
    if options.stop_rounds is not None:
        faults.append(stop_at_every_step(options.stop_rounds))
    step = hook(options.fault_at, options.fault, faults)
    with SignalHandler() as signals:
        try:
            return run(load(options.config, os.environ, options.set), signals, crash_hook=step)
        except StreamFsError as error:  # as the command line does
            sys.stderr.write(f"stream-fs: {error}\n")
            return exit_code(error)


if __name__ == "__main__":
    sys.exit(main())
