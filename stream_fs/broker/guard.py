"""Run a command that must not outlive the process that asked for it.

Run as a script: ``python -I guard.py PARENT SCRATCH [COMMAND…]``. ``PARENT`` is the process id of
the asking process, which holds the other end of standard input and writes one byte into it:
`STOP` (end the command in order) or `KILL` (at once). When the parent is gone, however it ended,
the command is killed and the directory ``SCRATCH`` removed; without a command, the directory alone
is guarded. Should the guard itself be killed, the kernel kills the command (Linux).

Standard library only, and no import of the package: it starts fast and from any directory.
"""

from __future__ import annotations

import ctypes
import os
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from typing import Final

STOP: Final = b"s"
KILL: Final = b"k"
GONE: Final = b""
"""What is read when nobody holds the other end any more."""
GRACE_SECONDS: Final = 30.0
"""How long an orderly end may take before the command is killed."""

_LOOK_SECONDS: Final = 0.2
_PR_SET_PDEATHSIG: Final = 1


def main(arguments: list[str]) -> int:
    """Run the command until it ends or has to end; its exit status (128 + n after signal n)."""
    parent, scratch, *command = arguments
    child = _start(command) if command else None
    while child is None or child.poll() is None:
        order = _order(int(parent))
        if order is None:
            continue
        if child is not None:
            _end(child, signal.SIGTERM if order == STOP else signal.SIGKILL)
        if order == GONE:
            shutil.rmtree(scratch, ignore_errors=True)
        if child is None:
            return 0
    return child.returncode if child.returncode >= 0 else 128 - child.returncode


def _start(command: list[str]) -> subprocess.Popen[bytes]:
    """The command in a process group of its own."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=_die_with_guard()
    )


def _order(parent: int) -> bytes | None:
    """What the parent wants: `STOP`, `KILL`, `GONE` when it has ended, None for nothing yet.

    The end of standard input is not enough: a process forked from the parent may hold it open.
    """
    if os.getppid() != parent:
        return GONE
    readable, _, _ = select.select([sys.stdin.fileno()], [], [], _LOOK_SECONDS)
    return os.read(sys.stdin.fileno(), 1) if readable else None


def _end(child: subprocess.Popen[bytes], how: signal.Signals) -> None:
    """Signal the command and what it started, wait for it, and insist after `GRACE_SECONDS`."""
    os.killpg(child.pid, how)
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _die_with_guard() -> Callable[[], None] | None:
    """What the command does between fork and exec, so that the guard's death is its own."""
    if not sys.platform.startswith("linux"):
        return None
    guard = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def bind() -> None:
        if prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != guard:
            os._exit(127)

    return bind


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
