"""A process of the service, seen from outside."""

from __future__ import annotations

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.support.recovery.faulty_service import STANDS, Moment
from tests.support.recovery.launchers import Start
from tests.support.recovery.process_faults import Happening

PATIENCE_SECONDS = 120.0
"""When to give up; far more than anything takes, also on a busy machine."""


class Life:
    """From its start to its end, whichever that is."""

    def __init__(
        self,
        start: Start,
        config: Path,
        log: Path,
        moment: Moment | None = None,
        sent: Happening = "KILL",
        more: Sequence[str] = (),
    ) -> None:
        arguments = ["--config", str(config), *more]
        if moment is not None:
            arguments += ["--die-at", str(moment), "--then", sent]
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
        """How it has ended (-n by signal n); None if it runs."""
        return self._process.code()

    @property
    def standing(self) -> bool:
        """Whether a signal has stopped it for a while (Linux)."""
        status = Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8")
        return "State:\tT" in status

    def log(self, event: str) -> list[dict[str, Any]]:
        """The lines of its log with this event."""
        return [line for line in map(_parsed, self._lines()) if line.get("event") == event]

    def count(self, text: str) -> int:
        """How many lines of its log have this in them."""
        return sum(text in line for line in self._lines())

    def stood(self) -> Counter[str]:
        """How often it was stopped at each step."""
        lines = [line for line in self._lines() if line.startswith(STANDS)]
        return Counter(line.removeprefix(STANDS) for line in lines)

    @property
    def stands_at(self) -> str | None:
        """The step where it stands, or has stood last."""
        lines = [line for line in self._lines() if line.startswith(STANDS)]
        return lines[-1].removeprefix(STANDS) if lines else None

    def said(self, text: str) -> bool:
        """Whether its log has this text anywhere."""
        return any(text in line for line in self._lines())

    def ends(self) -> int:
        """Wait for its end, however it comes; how it has ended (-n by signal n)."""
        found = self._process.code(PATIENCE_SECONDS)
        if found is None:
            raise self.wrong("does not end")
        return found

    def signal(self, what: signal.Signals) -> None:
        if not self.ended:
            os.kill(self.pid, what)

    def kill(self) -> None:
        """At once, whatever it is about to do."""
        self.signal(signal.SIGKILL)
        self._process.code(PATIENCE_SECONDS)

    def stop(self) -> None:
        """As a supervisor does it; everything is put in order.

        Not before it hears signals: on a busy machine it may take seconds to begin.
        """
        self.until(lambda: bool(self.log("listening")), "hearing signals")
        self.signal(signal.SIGTERM)
        self.expect(0)

    def until_running(self) -> None:
        """Wait until it has taken over what it found."""
        self.until(lambda: bool(self.log("task is running")), "its work")

    def expect(self, code: int) -> None:
        """Wait for its end, which has to be this one (-n is signal n)."""
        found = self._process.code(PATIENCE_SECONDS)
        if found != code:
            raise self.wrong(f"should have ended with {code}, not with {found}")

    def until(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for something that this process brings about."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not condition():
            time.sleep(0.005)
            if self.ended:
                raise self.wrong(f"has ended with {self._process.code()} before {what}")
            if time.monotonic() > deadline:
                raise self.wrong(f"does not come to {what}")

    def wrong(self, what: str) -> AssertionError:
        """What to raise when it does not do as it should."""
        tail = "\n".join(self._lines()[-20:])
        return AssertionError(f"the process {what}; the end of its log:\n{tail}")

    def _lines(self) -> list[str]:
        return self._log.read_text(encoding="utf-8", errors="replace").splitlines()


def _parsed(line: str) -> dict[str, Any]:
    """The fields of a line; another line than ours, or half a one, has none."""
    try:
        fields = json.loads(line)
    except ValueError:
        return {}
    return fields if isinstance(fields, dict) else {}
