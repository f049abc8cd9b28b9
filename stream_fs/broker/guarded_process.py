"""A command or a directory under the guard: the asking side."""

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
        """Start it; its output is appended to ``output``, its errors to ``errors`` or there, too.

        ``scratch`` is a directory that is removed with the command when this process dies before
        it could do so itself. ``environ`` takes the place of this process's environment.
        """
        guarded = [sys.executable, "-I", guard.__file__, str(os.getpid()), str(scratch), *command]
        with output.open("ab") as log, (errors or output).open("ab") as error_log:
            self._guard = subprocess.Popen(
                guarded,
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
        """Wait for the end of the command; its exit status. An interrupted wait kills it."""
        try:
            return self._ended()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """End the command in order, or by force when it takes too long."""
        self._end(guard.STOP)

    def kill(self) -> None:
        """End the command at once."""
        self._end(guard.KILL)

    def _end(self, order: bytes) -> None:
        if self.running():
            with contextlib.suppress(BrokenPipeError):  # it may end by itself in this moment
                self._orders.write(order)
        self._ended()

    def _ended(self) -> int:
        status = self._guard.wait()
        self._orders.close()
        return status


@contextmanager
def guarded_directory(prefix: str) -> Iterator[Path]:
    """A temporary directory that is removed in the end, also when this process is killed."""
    directory = Path(tempfile.mkdtemp(prefix=prefix))
    watch = GuardedCommand([], output=Path(os.devnull), scratch=directory)
    try:
        yield directory
    finally:
        try:
            shutil.rmtree(directory)
        finally:
            watch.kill()
