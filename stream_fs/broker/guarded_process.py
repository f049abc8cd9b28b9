"""Commands and directories that are removed when this process ends, see `guard`."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from stream_fs.broker import guard


class GuardedCommand:
    """A command that runs no longer than this process, see `stream_fs.broker.guard`."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        output: Path,
        scratch: Path,
        errors: Path | None = None,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        """Start it; appends its output to ``output``, and its errors to ``errors`` or there, too.

        ``scratch`` is a directory that the guard removes when this process dies. ``environ``
        replaces the environment.
        """
        command_line = [
            sys.executable,
            "-I",
            guard.__file__,
            str(os.getpid()),
            str(scratch),
            *command,
        ]
        with output.open("ab") as log, (errors or output).open("ab") as error_log:
            self._guard = subprocess.Popen(
                command_line,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=error_log,
                bufsize=0,
                env=environ,
                start_new_session=True,
            )
        assert self._guard.stdin is not None
        self._orders = self._guard.stdin

    def running(self) -> bool:
        """Whether the command still runs."""
        return self._guard.poll() is None

    def wait(self) -> int:
        """Wait for the command, and return its exit status; an interrupted wait kills it."""
        try:
            return self._await_end()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Terminate the command, or kill it if that takes too long."""
        self._end(guard.STOP)

    def kill(self) -> None:
        """Kill the command."""
        self._end(guard.KILL)

    def _end(self, order: bytes) -> None:
        if self.running():
            with contextlib.suppress(BrokenPipeError):  # it may have ended by itself
                self._orders.write(order)
        self._await_end()

    def _await_end(self) -> int:
        status = self._guard.wait()
        self._orders.close()
        return status


@contextmanager
def guarded_directory(prefix: str) -> Iterator[Path]:
    """A temporary directory that is removed also when this process is killed."""
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    guarded = GuardedCommand([], output=Path(os.devnull), scratch=directory)
    try:
        yield directory
    finally:
        try:
            shutil.rmtree(directory)
        finally:
            guarded.kill()
