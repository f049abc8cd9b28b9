"""A process of the service, observed by its log and its exit code."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.recovery.faulty_service import STOPPED_AT, FaultPoint
from tests.support.recovery.launchers import Launcher
from tests.support.recovery.process_faults import FaultKind

TIMEOUT_SECONDS = 120.0
"""Far more than anything takes, also on a busy machine."""


class ServiceProcess:
    """One process of `faulty_service`, from its start to its end."""

    def __init__(
        self,
        start: Launcher,
        config: Path,
        log: Path,
        fault_point: FaultPoint | None = None,
        fault: FaultKind = "KILL",
        more: Sequence[str] = (),
    ) -> None:
        arguments = ["--config", str(config), *more]
        if fault_point is not None:
            arguments += ["--fault-at", str(fault_point), "--fault", fault]
        self._log = log
        self._process = start(arguments, log)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> bool:
        return self._process.code() is not None

    @property
    def code(self) -> int | None:
        """Its exit code (-n by signal n); None if it runs."""
        return self._process.code()

    @property
    def stopped(self) -> bool:
        """Whether SIGSTOP has stopped it (Linux)."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return "State:\tT" in status

    def log(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log with this event."""
        return [line for line in map(_parsed, self._lines()) if line.get("event") == event]

    def count(self, text: str) -> int:
        """How many lines of its log contain this text."""
        return sum(text in line for line in self._lines())

    def stops_by_step(self) -> Counter[str]:
        """How often it stopped at each step."""
        lines = [line for line in self._lines() if line.startswith(STOPPED_AT)]
        return Counter(line.removeprefix(STOPPED_AT) for line in lines)

    @property
    def last_stop(self) -> str | None:
        """The step of its last stop."""
        lines = [line for line in self._lines() if line.startswith(STOPPED_AT)]
        return lines[-1].removeprefix(STOPPED_AT) if lines else None

    def log_contains(self, text: str) -> bool:
        """Whether a line of its log contains this text."""
        return any(text in line for line in self._lines())

    def wait(self) -> int:
        """Wait for its end; its exit code (-n by signal n)."""
        found = self._process.code(TIMEOUT_SECONDS)
        if found is None:
            raise self.failure("does not end")
        return found

    def signal(self, number: signal.Signals) -> None:
        if not self.ended:
            os.kill(self.pid, number)

    def kill(self) -> None:
        """Send SIGKILL, and wait for the end."""
        self.signal(signal.SIGKILL)
        self._process.code(TIMEOUT_SECONDS)

    def stop(self) -> None:
        """Shut it down gracefully, as a supervisor does.

        It handles signals from the line "listening" on, which on a busy machine takes seconds.
        """
        self.until(lambda: bool(self.log("listening")), "handling signals")
        self.signal(signal.SIGTERM)
        self.expect(0)

    def until_running(self) -> None:
        """Wait until it has acquired and restored a partition."""
        self.until(lambda: bool(self.log("task is running")), "a running task")

    def expect(self, code: int) -> None:
        """Wait for its end, with this exit code (-n is signal n)."""
        found = self._process.code(TIMEOUT_SECONDS)
        if found != code:
            raise self.failure(f"ended with {found}, not with {code}")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for an effect of this process."""
        deadline = time.monotonic() + TIMEOUT_SECONDS
        while not condition():
            time.sleep(0.005)
            if self.ended:
                raise self.failure(f"ended with {self._process.code()} before {what}")
            if time.monotonic() > deadline:
                raise self.failure(f"does not reach {what}")

    def failure(self, what: str) -> AssertionError:
        """An error with the end of its log."""
        tail = "\n".join(self._lines()[-20:])
        return AssertionError(f"the process {what}; the end of its log:\n{tail}")

    def _lines(self) -> list[str]:
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines()


def _parsed(line: str) -> dict[str, Any]:
    """The fields of a line; none if it is incomplete or not of the service."""
    try:
        fields = json.loads(line)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
