"""The service with a fault: ``python -m tests.support.recovery.faulty_service --config FILE``.

The real service; its crash hook injects the fault. With `--die-at STEP:N`, a fault (SIGKILL by
default) occurs at the N-th occurrence of a step of a commit or of a merge; with `--stand`, the
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
    Happening,
    happen,
    jumping_clock,
    slowness,
    stand_still,
)

STEPS = ("updated", "begun", "snapshot sent", "records sent", "committed", "advised")
"""The steps of a commit, in their order; the third one only where a snapshot is due."""
STANDS = "standing at "
"""Said before the name of the step."""
MERGE_STEPS = ("merge begun", "merge sent", "merge committed")
"""Those of publishing a merged ranking."""

_PR_SET_PDEATHSIG = 1


class Moment(NamedTuple):
    """The N-th occurrence of a step in the life of a process."""

    step: str
    occurrence: int

    @classmethod
    def parse(cls, text: str) -> Moment:
        step, _, occurrence = text.rpartition(":")
        steps = (*STEPS, *MERGE_STEPS)
        if step not in steps or not occurrence.isdecimal() or int(occurrence) < 1:
            raise argparse.ArgumentTypeError(f"should be STEP:N, with a step of {steps}")
        return cls(step, int(occurrence))

    def __str__(self) -> str:
        return f"{self.step}:{self.occurrence}"


def hook(
    moment: Moment | None, what: Happening, hindrances: Sequence[Callable[[str], None]]
) -> Callable[[str], None]:
    """A step hook that lets something happen in a moment, and hindrances take part in every one."""
    seen: Counter[str] = Counter()

    def step(name: str) -> None:
        if name not in (*STEPS, *MERGE_STEPS):
            raise ValueError(f"the proof does not know the step {name!r}")
        seen[name] += 1
        for hindrance in hindrances:
            hindrance(name)
        if moment == (name, seen[name]):
            happen(what)

    return step


def standing(rounds: int) -> Callable[[str], None]:
    """A step hook that stops this process so many times at each step, until somebody lets it go on.

    At the one where it has stood least often, so that it does not matter which steps are repeated.
    """
    stood = dict.fromkeys(STEPS, 0)
    since = 0

    def step(name: str) -> None:
        nonlocal since
        since += 1
        times = stood.get(name, rounds)
        if since > len(STEPS) and times < rounds and times == min(stood.values()):
            stood[name] += 1
            since = 0
            print(f"{STANDS}{name}", file=sys.stderr, flush=True)
            stand_still()

    return step


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m tests.support.recovery.faulty_service", description=__doc__
    )
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    parser.add_argument("--die-at", type=Moment.parse, metavar="STEP:N")
    parser.add_argument("--then", choices=get_args(Happening), default="KILL")
    parser.add_argument("--set", action="append", default=[], metavar="SECTION.KEY=VALUE")
    parser.add_argument("--slow", type=float, metavar="SECONDS", help="longer for every update")
    parser.add_argument("--stand", type=int, metavar="ROUNDS", help="stops at every step in turn")
    parser.add_argument("--clock", type=float, metavar="SECONDS", help="jumps, there and back")
    options = parser.parse_args(arguments)
    if sys.platform.startswith("linux"):
        # Should whoever started it be killed, it goes, too.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    faulthandler.register(signal.SIGUSR1)  # to see where it stands
    hindrances: list[Callable[[str], None]] = []
    if options.slow is not None:
        hindrances.append(slowness(options.slow))
    if options.clock is not None:
        hindrances.append(jumping_clock(options.clock))
    if options.stand is not None:
        hindrances.append(standing(options.stand))
    step = hook(options.die_at, options.then, hindrances)
    with SignalHandler() as stopping:
        try:
            return run(load(options.config, os.environ, options.set), stopping, crash_hook=step)
        except StreamFsError as error:  # as the command does
            sys.stderr.write(f"stream-fs: {error}\n")
            return exit_code(error)


if __name__ == "__main__":
    sys.exit(main())
