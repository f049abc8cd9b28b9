"""A replay that ends for lack of disk space, and continues when there is some."""

from __future__ import annotations

import itertools
import resource
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from stream_fs.service.exit_codes import ExitCode
from stream_fs.wire.records.encoder import encode_record
from tests.support.recovery.comparison import Comparison, compare
from tests.support.recovery.content import good_records, records_for
from tests.support.recovery.launchers import ROOT
from tests.support.recovery.service_process import TIMEOUT_SECONDS
from tests.support.recovery.stream_run import configure
from tests.support.recovery.subscriber import Received

_BAD_EVERY = 30
_BAD = encode_record({"a": np.zeros(11)})


@dataclass(frozen=True)
class Replay:
    """A replay of a file of records, and the folder of its outputs and its checkpoint."""

    config: Path
    records: Path
    folder: Path

    def run(self, largest: int | None = None) -> subprocess.CompletedProcess[str]:
        """Run the command; no file may become larger than `largest` bytes."""

        def limit() -> None:
            if largest is not None:
                resource.setrlimit(resource.RLIMIT_FSIZE, (largest, largest))

        outputs = {"--rankings": "rankings", "--dead-letters": "letters", "--checkpoint": "state"}
        command = [sys.executable, "-m", "stream_fs.cli", "replay", "--config", str(self.config)]
        for flag, name in outputs.items():
            command += [flag, str(self.folder / name)]
        return subprocess.run(
            [*command, str(self.records)],
            cwd=ROOT,
            preexec_fn=limit,
            capture_output=True,
            text=True,
            timeout=TIMEOUT_SECONDS,
        )

    @property
    def lines(self) -> list[Received]:
        """The numbered lines of its rankings and dead letters."""
        written = [
            (name.encode(), line)
            for name in ("rankings", "letters")
            for line in (self.folder / name).read_bytes().splitlines(keepends=True)
        ]
        return [
            Received(name, line, (("number", b"%d" % number),))
            for number, (name, line) in enumerate(written)
        ]

    def against(self, undisturbed: Replay) -> Comparison:
        """Compare every line with the one at the same place."""
        return compare(undisturbed.lines, self.lines, lambda line: int(line.headers[0][1] or b""))


def replays(folder: Path, chunks: int) -> Callable[[str], Replay]:
    """Replays of the same records, each with a folder of its own by this name."""
    config = configure(folder, "nowhere:9", "records", "disk", "")
    records = folder / "records.msgpack"
    good = itertools.islice(good_records(0), records_for(chunks))
    with records.open("wb") as file:
        for number, value in enumerate(good):
            file.write(value + (_BAD if number % _BAD_EVERY == 0 else b""))

    def made(name: str) -> Replay:
        (folder / name).mkdir()
        return Replay(config, records, folder / name)

    return made


def ended_without_space(found: subprocess.CompletedProcess[str]) -> bool:
    """Whether it ended for lack of disk space, with its exit code and one line of error."""
    if found.returncode == ExitCode.OK:
        return False
    lines = found.stderr.splitlines()
    assert found.returncode == ExitCode.STORAGE, found.stderr
    assert "cannot be written" in lines[-1], found.stderr
    assert "Traceback" not in found.stderr, found.stderr
    return True


def run_with_file_size_limit(replay: Replay, step: int) -> int:
    """Raise the file size limit by `step` until it completes; the number of failures."""
    for times in itertools.count():
        if not ended_without_space(replay.run((times + 1) * step)):
            return times
    raise AssertionError


def run_on_small_disk(replay: Replay, size: int) -> int:
    """Enlarge its disk by `size` until it completes; the number of failures."""
    for times in itertools.count():
        if not ended_without_space(replay.run()):
            return times
        room = f"remount,size={(times + 2) * size}"
        subprocess.run(["mount", "-o", room, str(replay.folder)], check=True, capture_output=True)
    raise AssertionError


@contextmanager
def small_disk(folder: Path, size: int) -> Iterator[str | None]:
    """Mount a file system of so many bytes; yields the reason if that is impossible."""
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)]
    reason: str | None = None
    try:
        mounted = subprocess.run(command, capture_output=True, check=False, text=True)
        if mounted.returncode:
            reason = mounted.stderr.strip() or f"mount ended with {mounted.returncode}"
    except FileNotFoundError as error:
        reason = str(error)
    try:
        yield reason
    finally:
        if reason is None:
            subprocess.run(["umount", str(folder)], check=True, capture_output=True)
