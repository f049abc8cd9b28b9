"""The service as a process of its own: its pages, signals, output and exit code."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Sequence
from http import HTTPStatus
from pathlib import Path
from typing import Final

from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS

ROOT: Final = Path(__file__).parents[3]
NOWHERE: Final = "127.0.0.1:1"
"""An address without a broker."""
COMMAND: Final = ("-m", "stream_fs.cli")


class Service:
    """`stream-fs run`, or another program with the same arguments."""

    def __init__(self, configuration: Path, program: Sequence[str] = COMMAND) -> None:
        self.configuration = configuration
        self._log = configuration.with_suffix(".log")
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, *program, "run", "--config", str(configuration)],
                cwd=ROOT,
                stdout=subprocess.DEVNULL,
                stderr=log,
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    @property
    def output(self) -> str:
        """Its standard error so far."""
        return self._log.read_text(encoding="utf-8")

    def wait_for_output(self, text: str) -> None:
        """Wait for a text on standard error."""
        self.wait_for(lambda: text in self.output, f"no output {text!r}")

    def wait_for(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition while it runs."""

        def met() -> bool:
            assert self._process.poll() is None, f"it has ended: {self.output}"
            return condition()

        try:
            wait_until(met, what)
        except TimeoutError as error:
            error.add_note(self.output)
            raise

    @property
    def address(self) -> str:
        """The address of its HTTP server."""
        self.wait_for_output("listening")
        (address,) = re.findall(r"listening.* address=(\S+)", self.output)
        return str(address)

    def get(self, path: str) -> tuple[int, str]:
        """Status and text of a page."""
        try:
            with urllib.request.urlopen(f"{self.address}{path}", timeout=TIMEOUT_SECONDS) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as refusal:
            with refusal:
                return refusal.code, refusal.read().decode()

    def ready(self) -> bool:
        return self.get("/readyz")[0] == HTTPStatus.OK

    def send(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    def terminate(self) -> None:
        """Shut it down gracefully."""
        self.send(signal.SIGTERM)
        assert self.wait() == 0, self.output

    def wait(self) -> int:
        """Wait for its end; its exit code."""
        try:
            return self._process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"it does not end; its output: {self.output}") from None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
