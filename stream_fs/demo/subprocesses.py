"""Commands of `stream-fs` as subprocesses; each command line is printed."""

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
    """A command of the demo failed; the message has its latest output."""


def without_configuration(environ: Mapping[str, str]) -> dict[str, str]:
    """The environment without variables that would override the demo's configuration.

    They configure a service of the user, whose broker the demo must not use.
    """
    settings = {setting.origin for setting in of_environment(environ)}
    return {name: value for name, value in environ.items() if name not in settings}


@dataclass(frozen=True)
class BackgroundCommand:
    """A command that runs in the background."""

    name: str
    command: GuardedCommand
    output: Path
    log: Path

    def check(self) -> None:
        """Raise `DemoError` if it has failed."""
        if not self.command.running() and (status := self.command.wait()) != 0:
            raise DemoError(f"stream-fs {self.name} ended with {status}:\n{tail(self.log)}")

    def stop(self) -> int:
        """Shut it down gracefully; its exit status."""
        self.command.stop()
        return self.command.wait()


@dataclass(frozen=True)
class CommandRunner:
    """Runs commands in the demo's directory, where their output is written."""

    console: Console
    directory: Path
    environ: Mapping[str, str]

    def run(self, *arguments: str) -> str:
        """Run a command and wait for it; its standard output."""
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
        self, *arguments: str, quiet: bool = False, graceful: bool = False
    ) -> Iterator[BackgroundCommand]:
        """Run a command until the context ends, at the latest until this process ends.

        Then a `graceful` command gets SIGTERM, any other SIGKILL.
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
            if graceful:
                command.stop()
            else:
                command.kill()

    def _show(self, arguments: Sequence[str]) -> None:
        line = f"$ stream-fs {shlex.join(arguments)}"
        self.console.print(line, style="dim", highlight=False, markup=False, soft_wrap=True)
