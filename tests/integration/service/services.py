"""The service as a process of its own: its pages, its signals, what it says, and how it ends."""

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
    """`stream-fs run`, or a program that begins in another way."""

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
    def said(self) -> str:
        """All that it has written to standard error."""
        return self._log.read_text(encoding="utf-8")

    def says(self, text: str) -> None:
        """Wait for a text on standard error."""
        self.comes_to(lambda: text in self.said, f"it does not say {text!r}")

    def comes_to(self, condition: Callable[[], bool], what: str) -> None:
        """Wait for a condition while it runs."""

        def met() -> bool:
            assert self._process.poll() is None, f"it has ended: {self.said}"
            return condition()

        try:
            wait_until(met, what)
        except TimeoutError as error:
            error.add_note(self.said)
            raise

    @property
    def address(self) -> str:
        """Where its pages are."""
        self.says("listening")
        (address,) = re.findall(r"listening.* address=(\S+)", self.said)
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
        """End it in order."""
        self.send(signal.SIGTERM)
        assert self.ends() == 0, self.said

    def ends(self) -> int:
        """Its exit code, when it has ended by itself."""
        try:
            return self._process.wait(TIMEOUT_SECONDS)
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"it does not end; it said: {self.said}") from None

    def kill(self) -> None:
        self._process.kill()
        self._process.wait()
