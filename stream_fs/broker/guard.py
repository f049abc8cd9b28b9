"""Running a command that must not outlive the process that has started it.

A script: ``python -I guard.py PARENT SCRATCH [COMMAND…]``. ``PARENT`` is the process id of the
parent, which holds the other end of standard input and writes one byte into it: `STOP` (terminate
the command) or `KILL`. When the parent has ended for any reason, the command is killed and the
directory ``SCRATCH`` is removed; without a command, only the directory is guarded. If the guard
itself is killed, the kernel kills the command (Linux).

It uses the standard library only and no module of the package: it starts fast, in any directory.
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
"""What is read when the other end is closed."""
GRACE_SECONDS: Final = 30.0
"""Time to terminate, before the command is killed."""

_POLL_SECONDS: Final = 0.2
_PR_SET_PDEATHSIG: Final = 1


def main(arguments: list[str]) -> int:
    """Run the command until it ends or has to; returns its exit status (128 + n for signal n)."""
    parent, scratch, *command = arguments
    child = _start(command) if command else None
    while child is None or child.poll() is None:
        order = _read_order(int(parent))
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
    """Start the command in its own process group."""
    return subprocess.Popen(
        command, stdin=subprocess.DEVNULL, process_group=0, preexec_fn=_die_with_guard()
    )


def _read_order(parent: int) -> bytes | None:
    """The order of the parent, `GONE` when it has ended, None if there is none yet.

    The end of standard input is not sufficient: a fork of the parent may hold it open.
    """
    if os.getppid() != parent:
        return GONE
    readable, _, _ = select.select([sys.stdin.fileno()], [], [], _POLL_SECONDS)
    return os.read(sys.stdin.fileno(), 1) if readable else None


def _end(child: subprocess.Popen[bytes], signal_number: signal.Signals) -> None:
    """Signal the process group of the command, and kill it after `GRACE_SECONDS`."""
    os.killpg(child.pid, signal_number)
    try:
        child.wait(GRACE_SECONDS)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        child.wait()


def _die_with_guard() -> Callable[[], None] | None:
    """A function to call between fork and exec, with which the kernel kills the command too."""
    if not sys.platform.startswith("linux"):
        return None
    guard = os.getpid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl

    def die_with_guard() -> None:
        if prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0) != 0 or os.getppid() != guard:
            os._exit(127)

    return die_with_guard


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
