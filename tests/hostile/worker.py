"""``python -m tests.hostile.worker``: hostile inputs for one target, under limits.

A process of its own, so that memory can be limited and a crash of compiled code is a finding. The
findings are printed as one JSON document; a file has the number of the current input, in case the
process crashes.
"""

from __future__ import annotations

import argparse
import json
import mmap
import os
import resource
import sys
import tempfile
import time
import traceback
import tracemalloc
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

from stream_fs.errors import StreamFsError
from tests.hostile.registry import all_targets
from tests.hostile.target import Target

ADDRESS_SPACE: Final = 384 << 20
"""Bytes above what the process has at its start; valid inputs take far less."""
MEASURED: Final = 32
"""The memory of one in this number of inputs is measured."""
ALLOWED_BYTES: Final = 24 << 20
"""Memory that any input may take."""
ALLOWED_RATIO: Final = 150
"""More memory per byte of input: an empty map is a byte of MessagePack, and 72 in Python."""
ALLOWED_TEXT: Final = 10_000
ALLOWED_TEXT_RATIO: Final = 10
"""Characters of an error, and more per byte of input: quoted bytes may be escaped."""
FAULTS_PER_KIND: Final = 3


@dataclass
class Findings:
    """The results of some inputs."""

    inputs: int = 0
    accepted: int = 0
    rejected: int = 0
    measured: int = 0
    largest: int = 0
    """Most memory of a measured input."""
    slowest: float = 0.0
    """CPU seconds of the slowest input."""
    slowest_number: int = -1
    faults: list[str] = field(default_factory=list)


class Attempts:
    """Tries inputs, one after another."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self._seed = seed
        self._kinds: dict[str, int] = {}
        self.findings = Findings()

    def attempt_all(self, numbers: range) -> None:
        """Try these inputs, as a batch where the target has any, one by one where that fails."""
        first, *rest = numbers
        self.attempt(first)
        inputs = [self.target.input(self._seed, number) for number in rest]
        if inputs and self.target.attempt_batch is not None:
            try:
                self.target.attempt_batch(inputs)
            except Exception:  # noqa: BLE001  # the guilty input is searched below
                before = len(self.findings.faults)
                for number in rest:
                    self.attempt(number)
                if len(self.findings.faults) == before:
                    whole = b"".join(inputs)
                    self._fault(first, whole, "batch", f"inputs from {first} on, only as a batch")
                return
            self.findings.accepted += len(inputs)
            self.findings.inputs += len(inputs)
            return
        for number in rest:
            self.attempt(number)

    def attempt(self, number: int) -> None:
        data = self.target.input(self._seed, number)
        measured = number % MEASURED == 0
        if measured:
            tracemalloc.start()
        began = time.process_time()
        try:
            self.target.attempt(data)
            self.findings.accepted += 1
        except StreamFsError as error:
            self.findings.rejected += 1
            if len(str(error)) > ALLOWED_TEXT + ALLOWED_TEXT_RATIO * len(data):
                self._fault(number, data, "message", f"{len(str(error))} characters")
        except Exception as error:  # noqa: BLE001  # any other error is a fault
            self._fault(number, data, _kind(error), traceback.format_exception_only(error)[-1])
        seconds = time.process_time() - began
        if measured:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.findings.measured += 1
            self.findings.largest = max(self.findings.largest, peak)
            if peak > ALLOWED_BYTES + ALLOWED_RATIO * len(data):
                self._fault(number, data, "memory", f"{peak >> 20} MB for {len(data)} bytes")
        elif seconds > self.findings.slowest:
            self.findings.slowest, self.findings.slowest_number = seconds, number
        self.findings.inputs += 1

    def _fault(self, number: int, data: bytes, kind: str, text: str) -> None:
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self._kinds[kind] <= FAULTS_PER_KIND:
            self.findings.faults.append(describe(self.target.name, number, data, f"{kind}: {text}"))


def describe(target: str, number: int, data: bytes, text: str) -> str:
    """A fault and its input, from which it can be reproduced."""
    whole = repr(data) if len(data) <= 2000 else f"{data[:500]!r} … {len(data)} bytes"
    return f"{target}, input {number}: {text[:500].strip()}: {whole}"


def _kind(error: BaseException) -> str:
    """The error and its position, by which repeated faults are recognised."""
    frames = traceback.extract_tb(error.__traceback__)
    own = [
        frame for frame in frames if "stream_fs" in frame.filename and "tests" not in frame.filename
    ]
    position = "".join(
        f" at {Path(one.filename).name}:{one.lineno}" for one in (own or frames)[-1:]
    )
    return f"{type(error).__name__}{position}"


def limit_memory(extra: int) -> None:
    """Limit the address space to its present size and `extra` bytes."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * mmap.PAGESIZE + extra
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.worker", description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=1)
    parser.add_argument("--at", type=Path, help="file for the number of the current input")
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    # The sums of a model of hostile numbers may overflow.
    warnings.simplefilter("ignore", RuntimeWarning)
    with tempfile.TemporaryDirectory(prefix="stream-fs-hostile-") as folder:
        targets = all_targets(Path(folder))
        limit_memory(ADDRESS_SPACE)
        attempts = Attempts(targets[arguments.target], arguments.seed)
        with _CurrentInput(arguments.at) as note:
            end = arguments.first + arguments.inputs
            if attempts.target.attempt_batch is None:
                for number in range(arguments.first, end):
                    note(number, attempts.findings)
                    attempts.attempt(number)
            else:
                for number in range(arguments.first, end, MEASURED):
                    note(number, attempts.findings)
                    attempts.attempt_all(range(number, min(number + MEASURED, end)))
    print(json.dumps(asdict(attempts.findings)))
    return 0


class _CurrentInput:
    """The file with the number of the current input."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __enter__(self) -> Callable[[int, Findings], None]:
        if self._path is None:
            return lambda *_: None
        self._file = self._path.open("r+b")
        self._file.truncate(16)
        memory = mmap.mmap(self._file.fileno(), 16)

        def note(number: int, findings: Findings) -> None:
            memory[:8] = number.to_bytes(8, "little")
            memory[8:] = findings.inputs.to_bytes(8, "little")

        return note

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            self._file.close()


if __name__ == "__main__":
    sys.exit(main())
