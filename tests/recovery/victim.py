"""A process to be killed: ``python -m tests.recovery.victim --config FILE [--die-at STEP:N …]``.

The real service. Its step hook sends the process a signal (SIGKILL unless told otherwise) at the
N-th occurrence of a step of a commit, or with `--stand` stops it at every step in turn; the service
itself knows nothing of it.
"""

from __future__ import annotations

import argparse
import ctypes
import faulthandler
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import NamedTuple

from stream_fs.errors import StreamFsError
from stream_fs.service.configuration import load
from stream_fs.service.exit_codes import exit_code
from stream_fs.service.run import run
from stream_fs.service.stopping import Stopping

STEPS = ("updated", "begun", "snapshot sent", "records sent", "committed", "advised")
"""The steps of a commit, in their order; the third one only where a snapshot is due."""
STANDS = "standing at "
"""Said before the name of the step."""
MERGE_STEPS = ("merge begun", "merge sent", "merge committed")

_PR_SET_PDEATHSIG = 1


class Moment(NamedTuple):
    """The N-th occurrence of a step in the life of a process."""

    step: str
    occurrence: int

    @classmethod
    def parse(cls, text: str) -> Moment:
        step, _, occurrence = text.rpartition(":")
        if step not in STEPS or not occurrence.isdecimal() or int(occurrence) < 1:
            raise argparse.ArgumentTypeError(f"should be STEP:N, with a step of {STEPS}")
        return cls(step, int(occurrence))

    def __str__(self) -> str:
        return f"{self.step}:{self.occurrence}"


def hook(moments: Collection[Moment], what: signal.Signals) -> Callable[[str], None]:
    """A step hook that sends this process a signal in moments of its life."""
    seen: Counter[str] = Counter()

    def step(name: str) -> None:
        if name not in (*STEPS, *MERGE_STEPS):
            raise ValueError(f"the proof does not know the step {name!r}")
        seen[name] += 1
        if (name, seen[name]) in moments:
            os.kill(os.getpid(), what)

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
            os.kill(os.getpid(), signal.SIGSTOP)

    return step


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.recovery.victim", description=__doc__)
    parser.add_argument("--config", type=Path, required=True, metavar="FILE")
    parser.add_argument("--die-at", type=Moment.parse, metavar="STEP:N", nargs="+", default=())
    parser.add_argument("--signal", choices=["KILL", "TERM", "STOP"], default="KILL")
    parser.add_argument("--stand", type=int, metavar="ROUNDS")
    options = parser.parse_args(arguments)
    if sys.platform.startswith("linux"):
        # Should whoever started it be killed, it goes, too.
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    faulthandler.register(signal.SIGUSR1)  # to see where it stands
    step = hook(options.die_at, signal.Signals[f"SIG{options.signal}"])
    if options.stand:
        step = standing(options.stand)
    with Stopping() as stopping:
        try:
            return run(load(options.config, os.environ), stopping, step=step)
        except StreamFsError as error:  # as the command does it
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
            return exit_code(error)


if __name__ == "__main__":
    sys.exit(main())
