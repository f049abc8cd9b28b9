"""Two ways to start a process of the service: a new interpreter, or a fork."""

from __future__ import annotations

import multiprocessing
import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Protocol

from tests.support.recovery import faulty_service

ROOT = Path(__file__).parents[3]


class Process(Protocol):
    """A started process."""

    @property
    def pid(self) -> int: ...

    def code(self, seconds: float = 0) -> int | None:
        """Its exit code (-n by signal n), waiting so many seconds for it; None if it runs."""
        ...


Launcher = Callable[[Sequence[str], Path], Process]
"""Takes the arguments of `faulty_service`, and a file for its log."""


class Spawned:
    """A new interpreter, as in production."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        command = [sys.executable, "-m", faulty_service.__name__, *arguments]
        with log.open("wb") as errors:
            self._process = subprocess.Popen(command, cwd=ROOT, stderr=errors)
        self.pid = self._process.pid

    def code(self, seconds: float = 0) -> int | None:
        try:
            return self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            return None


class Forked:
    """A fork of a process that has imported everything: seconds faster on a busy machine."""

    def __init__(self, arguments: Sequence[str], log: Path) -> None:
        log.touch()
        context = multiprocessing.get_context("forkserver")
        context.set_forkserver_preload([faulty_service.__name__])
        self._process = context.Process(target=_forked, args=(arguments, log), daemon=True)
        self._process.start()
        assert self._process.pid is not None
        self.pid = self._process.pid

    def code(self, seconds: float = 0) -> int | None:
        self._process.join(seconds)
        return self._process.exitcode


def _forked(arguments: Sequence[str], log: Path) -> None:
    with log.open("wb") as errors:
        os.dup2(errors.fileno(), sys.stderr.fileno())
    sys.exit(faulty_service.main(arguments))
