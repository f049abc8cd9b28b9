"""Finds running processes, and waits for conditions (Linux)."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tests.support.topics import TIMEOUT_SECONDS


def mentioning(text: str) -> dict[int, str]:
    """The running processes with ``text`` in their command line, by process id."""
    found = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
        except OSError:  # it has ended since
            continue
        if text in command:
            found[int(entry.name)] = command
    return found


def wait_until(condition: Callable[[], bool], what: str) -> None:
    """Wait until a condition holds; raises `TimeoutError` with `what`."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)
        time.sleep(0.05)
