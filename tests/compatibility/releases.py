"""Both sides of a comparison: an earlier release, and this code, each in processes of its own."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import msgpack

ROOT: Final = Path(__file__).parents[2]
_HERE: Final = Path(__file__).parent
_SINGLE: Final = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
"""One thread, so that sums are added in the same order every time."""


class Runner:
    """A checkout, and the interpreter that has its package; `core` is that of the selector."""

    def __init__(
        self,
        name: str,
        checkout: Path,
        python: Path,
        pipeline: Sequence[str],
        core: str | None = None,
    ) -> None:
        self.name = name
        self.checkout = checkout.resolve()
        self.python = python
        self._pipeline = list(pipeline)
        self.core = core

    @property
    def environment(self) -> dict[str, str]:
        """Of its processes."""
        outer = {k: v for k, v in os.environ.items() if not k.startswith(("STREAM_FS_", "PYTHON"))}
        demanded: Mapping[str, str] = {} if self.core is None else {"STREAM_FS_CORE": self.core}
        return {**outer, **_SINGLE, **demanded, "PYTHONPATH": str(self.checkout)}

    def version(self) -> str:
        """The release."""
        return self._output([str(self.python), "-m", "stream_fs.cli", "--version"]).split()[1]

    def pipeline(self, jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """What comes of jobs of `cases`."""
        return self._run([str(self.python), *self._pipeline], jobs)

    def selector(self, jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        """What comes of jobs of `library`."""
        return self._run([str(self.python), "-P", str(_HERE / "library.py")], jobs)

    def command(self, arguments: Sequence[str]) -> None:
        """Run `stream-fs`."""
        self._output([str(self.python), "-m", "stream_fs.cli", *arguments])

    def started(self, arguments: Sequence[str], log: Path) -> subprocess.Popen[bytes]:
        """A process of `stream-fs` that goes on by itself."""
        command = [str(self.python), "-m", "stream_fs.cli", *arguments]
        with log.open("ab") as file:
            return subprocess.Popen(
                command, cwd=self.checkout, env=self.environment, stdout=file, stderr=file
            )

    def _run(self, command: list[str], jobs: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
        with tempfile.TemporaryDirectory() as folder:
            given, found = Path(folder) / "jobs", Path(folder) / "results"
            given.write_bytes(msgpack.packb(list(jobs)))
            self._output([*command, str(given), str(found)])
            return list(msgpack.unpackb(found.read_bytes()))

    def _output(self, command: list[str]) -> str:
        ended = subprocess.run(
            command,
            cwd=self.checkout,
            env=self.environment,
            capture_output=True,
            text=True,
            check=False,
        )
        if ended.returncode:
            raise RuntimeError(f"{self.name}: {' '.join(command)}: {ended.stderr[-2000:]}")
        return ended.stdout


class Old(Runner):
    """A checkout of release 0.1.0 with its virtual environment."""

    def __init__(self, checkout: Path, core: str | None = None) -> None:
        driver = str(_HERE / "release_0_1_0.py")
        super().__init__("old", checkout, checkout / ".venv/bin/python", ["-P", driver], core)


class New(Runner):
    """This code, by the interpreter that runs it."""

    def __init__(self, core: str | None = None) -> None:
        module = ["-m", "tests.compatibility.present"]
        super().__init__("new", ROOT, Path(sys.executable), module, core)
