"""``python -m tests.hostile.worker``: hands hostile inputs to one decoder, under limits.

In a process of its own, so that a crash of compiled code is a finding and not the end, and so that
memory can be limited. What it finds it prints as one JSON document; the number of the input that it
is at stands in a file, should it not come to that.
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
from tests.hostile.every import every_target
from tests.hostile.target import Target

ROOM_BYTES: Final = 384 << 20
"""Address space above what the process has when it begins: nothing comes near it honestly."""
LOOKED_AT: Final = 32
"""Of so many inputs the memory of one is measured."""
FREE_BYTES: Final = 24 << 20
"""Memory that no input has to account for."""
FACTOR: Final = 150
"""Bytes of memory for a byte of input: an empty map is a byte of MessagePack, and 72 in Python."""
FREE_TEXT: Final = 10_000
TEXT_FACTOR: Final = 10
"""Characters that an error may have, and for a byte of input: what is quoted may be escaped."""
MOST_OF_A_KIND: Final = 3


@dataclass
class Findings:
    """What became of some inputs."""

    inputs: int = 0
    taken: int = 0
    refused: int = 0
    measured: int = 0
    largest: int = 0
    """Memory that a measured input took, at most."""
    slowest: float = 0.0
    """CPU seconds of the slowest input."""
    slowest_number: int = -1
    faults: list[str] = field(default_factory=list)


class Attempts:
    """Tries input after input."""

    def __init__(self, target: Target, seed: int) -> None:
        self.target = target
        self._seed = seed
        self._kinds: dict[str, int] = {}
        self.found = Findings()

    def attempt_all(self, numbers: range) -> None:
        """These inputs, together where the target takes many; one by one where that fails."""
        first, *rest = numbers
        self.attempt(first)
        inputs = [self.target.input(self._seed, number) for number in rest]
        if inputs and self.target.together is not None:
            try:
                self.target.together(inputs)
            except Exception:  # noqa: BLE001  # which one it was is found below
                before = len(self.found.faults)
                for number in rest:
                    self.attempt(number)
                if len(self.found.faults) == before:
                    whole = b"".join(inputs)
                    self._fault(first, whole, "batch", f"inputs {first} and on, together only")
                return
            self.found.taken += len(inputs)
            self.found.inputs += len(inputs)
            return
        for number in rest:
            self.attempt(number)

    def attempt(self, number: int) -> None:
        data = self.target.input(self._seed, number)
        measured = number % LOOKED_AT == 0
        if measured:
            tracemalloc.start()
        began = time.process_time()
        try:
            self.target.attempt(data)
            self.found.taken += 1
        except StreamFsError as error:
            self.found.refused += 1
            if len(str(error)) > FREE_TEXT + TEXT_FACTOR * len(data):
                self._fault(number, data, "message", f"{len(str(error))} characters")
        except Exception as error:  # noqa: BLE001  # whatever it is: that is what is looked for
            self._fault(number, data, _kind(error), traceback.format_exception_only(error)[-1])
        seconds = time.process_time() - began
        if measured:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            self.found.measured += 1
            self.found.largest = max(self.found.largest, peak)
            if peak > FREE_BYTES + FACTOR * len(data):
                self._fault(number, data, "memory", f"{peak >> 20} MB for {len(data)} bytes")
        elif seconds > self.found.slowest:
            self.found.slowest, self.found.slowest_number = seconds, number
        self.found.inputs += 1

    def _fault(self, number: int, data: bytes, kind: str, what: str) -> None:
        self._kinds[kind] = self._kinds.get(kind, 0) + 1
        if self._kinds[kind] <= MOST_OF_A_KIND:
            self.found.faults.append(described(self.target.name, number, data, f"{kind}: {what}"))


def described(target: str, number: int, data: bytes, what: str) -> str:
    """A fault, and its input so that anybody can make it again."""
    whole = repr(data) if len(data) <= 2000 else f"{data[:500]!r} … {len(data)} bytes"
    return f"{target}, input {number}: {what[:500].strip()}: {whole}"


def _kind(error: BaseException) -> str:
    """Where it comes from: the same fault is told a few times only."""
    frames = traceback.extract_tb(error.__traceback__)
    ours = [
        frame for frame in frames if "stream_fs" in frame.filename and "tests" not in frame.filename
    ]
    place = "".join(f" at {Path(one.filename).name}:{one.lineno}" for one in (ours or frames)[-1:])
    return f"{type(error).__name__}{place}"


def limit_memory(room: int) -> None:
    """No more address space than now, and some room."""
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    most = pages * mmap.PAGESIZE + room
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.hostile.worker", description=__doc__)
    parser.add_argument("target")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--inputs", type=int, default=1)
    parser.add_argument("--at", type=Path, help="file for the number that it is at")
    arguments = parser.parse_args()
    warnings.simplefilter("error")
    # A model of hostile numbers overflows; that these are numbers is all that is asked of them.
    warnings.simplefilter("ignore", RuntimeWarning)
    with tempfile.TemporaryDirectory(prefix="stream-fs-hostile-") as folder:
        targets = every_target(Path(folder))
        limit_memory(ROOM_BYTES)
        attempts = Attempts(targets[arguments.target], arguments.seed)
        with _noted(arguments.at) as note:
            end = arguments.first + arguments.inputs
            if attempts.target.together is None:
                for number in range(arguments.first, end):
                    note(number, attempts.found)
                    attempts.attempt(number)
            else:
                for number in range(arguments.first, end, LOOKED_AT):
                    note(number, attempts.found)
                    attempts.attempt_all(range(number, min(number + LOOKED_AT, end)))
    print(json.dumps(asdict(attempts.found)))
    return 0


class _noted:
    """The file with the number of the input that is being tried."""

    def __init__(self, path: Path | None) -> None:
        self._path = path

    def __enter__(self) -> Callable[[int, Findings], None]:
        if self._path is None:
            return lambda *_: None
        self._file = self._path.open("r+b")
        self._file.truncate(16)
        memory = mmap.mmap(self._file.fileno(), 16)

        def note(number: int, found: Findings) -> None:
            memory[:8] = number.to_bytes(8, "little")
            memory[8:] = found.inputs.to_bytes(8, "little")

        return note

    def __exit__(self, *_: object) -> None:
        if self._path is not None:
            self._file.close()


if __name__ == "__main__":
    sys.exit(main())
