"""The service as a process of its own, followed by its log (Linux)."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Any, Final, NamedTuple

import numpy as np

from tests.benchmarks.service.input_topics import TIMEOUT, Stream

ROOT: Final = Path(__file__).parents[3]
ENVIRONMENT: Final = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
COMMITTED: Final = "chunk committed"
_TICK: Final = os.sysconf("SC_CLK_TCK")
_POLL_SECONDS: Final = 0.02


class Transaction(NamedTuple):
    """The time of its commit, and the chunks committed by then."""

    at: float
    chunks: int


class ServiceProcess:
    """One process, from its start to the end of the block."""

    def __init__(self, stream: Stream) -> None:
        self._log = stream.path.with_suffix(f".{time.monotonic_ns()}.log")
        self._read = 0
        self.events: list[dict[str, Any]] = []
        """The lines of the log so far; `at` of each is in seconds since 1970."""
        self.spent: list[tuple[float, float]] = []
        """Times, and the processor seconds of all threads up to them."""
        self.began = time.time()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "stream_fs.cli", "run", "--config", str(stream.path)],
                env=ENVIRONMENT,
                stderr=log,
            )

    def __enter__(self) -> ServiceProcess:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def times_of(self, event: str) -> list[float]:
        """The times of an event in the log."""
        return [float(found["at"]) for found in self.events if found["event"] == event]

    def commits(self) -> list[tuple[float, int]]:
        """The time and the partition of every committed chunk."""
        return [(e["at"], e["partition"]) for e in self.events if e["event"] == COMMITTED]

    def transaction(self, chunks: int) -> Transaction:
        """Wait for the first transaction after which at least so many chunks are committed."""
        while True:
            committed = 0
            for found in self.events:
                if found["event"] == COMMITTED:
                    committed += 1
                    if committed >= chunks and "seconds" in found:
                        return Transaction(found["at"], committed)
            await_all([self], COMMITTED, committed + 1)

    def poll(self) -> None:
        """Read new lines of the log; raises `RuntimeError` if the process has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(self._log.read_text(encoding="utf-8")[-2000:])
        self.spent.append((time.time(), self._processor_seconds()))
        with self._log.open("rb") as log:
            log.seek(self._read)
            new = log.read()
        whole = new.rfind(b"\n") + 1
        self._read += whole
        # Libraries may log as well, in other formats.
        for line in filter(lambda line: line.startswith(b"{"), new[:whole].splitlines()):
            event = json.loads(line)
            self.events.append({**event, "at": datetime.fromisoformat(event["time"]).timestamp()})

    def wait_for(self, event: str, count: int) -> list[float]:
        """Wait until an event is so many times in the log; its times."""
        await_all([self], event, count)
        return self.times_of(event)

    def spent_at(self, moment: float) -> float:
        """Processor seconds up to a moment, interpolated between two samples."""
        moments, seconds = zip(*self.spent, strict=True)
        return float(np.interp(moment, moments, seconds))

    def _processor_seconds(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="utf-8")
        user, system = fields.rpartition(")")[2].split()[11:13]
        return (int(user) + int(system)) / _TICK

    def memory(self, name: str) -> int:
        """Bytes: `VmRSS` now, or `VmHWM` at most so far."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="utf-8")
        (line,) = (line for line in text.splitlines() if line.startswith(f"{name}:"))
        return int(line.split()[1]) * 1024

    def pause(self) -> None:
        """Stop it, with all of its threads."""
        self.process.send_signal(signal.SIGSTOP)

    def resume(self) -> None:
        """Continue it."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Shut it down gracefully."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(TIMEOUT)
        assert code == 0, self._log.read_text(encoding="utf-8")

    def kill(self) -> None:
        """Kill it."""
        self.process.kill()
        self.process.wait()


def await_all(started: Sequence[ServiceProcess], event: str, count: int) -> None:
    """Wait until an event is so many times in the logs of all processes together."""
    deadline = time.monotonic() + TIMEOUT
    while True:
        for process in started:
            process.poll()
        found = sum(len(process.times_of(event)) for process in started)
        if found >= count:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{found} of {count} times {event!r}")
        time.sleep(_POLL_SECONDS)
