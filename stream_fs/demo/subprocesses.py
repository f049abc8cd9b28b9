"""The commands of `stream-fs`, run as a user would run them, and shown."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from stream_fs.broker.guarded_process import GuardedCommand
from stream_fs.broker.node import tail
from stream_fs.errors import StreamFsError
from stream_fs.service.configuration.loader import of_environment

_CLI: Final = (sys.executable, "-m", "stream_fs.cli")


class DemoError(StreamFsError):
    """A part of the demo did not do what it should; the message has what it said last."""


def without_configuration(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment but for the variables that would go over the demo's configuration.

    They are meant for a service of the user's; the broker that they name must not be touched.
    """
    settings = {setting.origin for setting in of_environment(environ)}
    return {name: value for name, value in environ.items() if name not in settings}


@dataclass(frozen=True)
class BackgroundCommand:
    """A command that runs beside the demo."""

    name: str
    command: GuardedCommand
    output: Path
    log: Path

    def check(self) -> None:
        """Raise `DemoFailed` when it has ended badly."""
        if not self.command.running() and (status := self.command.wait()) != 0:
            raise DemoError(f"stream-fs {self.name} ended with {status}:\n{tail(self.log)}")

    def stop(self) -> int:
        """Let it end in order; its exit status."""
        self.command.stop()
        return self.command.wait()


@dataclass(frozen=True)
class CommandRunner:
    """Runs commands in the demo's directory, which also keeps what they print."""

    console: Console
    directory: Path
    environ: Mapping[str, str]

    def run(self, *arguments: str) -> str:
        """Run a command to its end; what it printed."""
        self._show(arguments)
        done = subprocess.run(
            [*_CLI, *arguments],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.directory,
            env=self.environ,
        )
        if done.returncode != 0:
            raise DemoError(
                f"stream-fs {arguments[0]} ended with {done.returncode}:\n{done.stderr}"
            )
        return done.stdout

    @contextmanager
    def background(
        self, *arguments: str, quiet: bool = False, orderly: bool = False
    ) -> Iterator[BackgroundCommand]:
        """Run a command until it is left, at the latest until this process ends.

        An `orderly` one is then asked to end, and the others are not.
        """
        if not quiet:
            self._show(arguments)
        name = arguments[0]
        output, log = self.directory / f"{name}.out", self.directory / f"{name}.log"
        command = GuardedCommand(
            [*_CLI, *arguments],
            output=output,
            errors=log,
            scratch=self.directory,
            environ=self.environ,
        )
        try:
            yield BackgroundCommand(name, command, output, log)
        finally:
            if orderly:
                command.stop()
            else:
                command.kill()

    def _show(self, arguments: Sequence[str]) -> None:
        line = f"$ stream-fs {shlex.join(arguments)}"
        self.console.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)
