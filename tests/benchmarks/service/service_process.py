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

from tests.benchmarks.service.input_topics import PATIENCE, Stream

ROOT: Final = Path(__file__).parents[3]
ENVIRONMENT: Final = {**os.environ, "OPENBLAS_NUM_THREADS": "1", "PYTHONPATH": str(ROOT)}
COMMITTED: Final = "chunk committed"
_TICK: Final = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS: Final = 0.02


class Transaction(NamedTuple):
    """When it was through, and the chunks that were committed by then."""

    at: float
    chunks: int


class Life:
    """One process, from its start to the end of the block."""

    def __init__(self, stream: Stream) -> None:
        self._log = stream.path.with_suffix(f".{time.monotonic_ns()}.log")
        self._read = 0
        self.events: list[dict[str, Any]] = []
        """What the log has told so far; `at` of each is in seconds since 1970."""
        self.spent: list[tuple[float, float]] = []
        """Moments, and the processor seconds of all threads up to them."""
        self.began = time.time()
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "stream_fs.cli", "run", "--config", str(stream.path)],
                env=ENVIRONMENT,
                stderr=log,
            )

    def __enter__(self) -> Life:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.kill()

    def told(self, event: str) -> list[float]:
        """When this was told, each time."""
        return [float(found["at"]) for found in self.events if found["event"] == event]

    def commits(self) -> list[tuple[float, int]]:
        """When chunks were committed, and of which partition."""
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

    def look(self) -> None:
        """Read on in the log; raises `RuntimeError` where the process has ended."""
        if self.process.poll() is not None:
            raise RuntimeError(self._log.read_text(encoding="utf-8")[-2000:])
        self.spent.append((time.time(), self._processor_seconds()))
        with self._log.open("rb") as log:
            log.seek(self._read)
            new = log.read()
        whole = new.rfind(b"\n") + 1
        self._read += whole
        # Libraries may have something to say as well, in their own way.
        for line in filter(lambda line: line.startswith(b"{"), new[:whole].splitlines()):
            event = json.loads(line)
            self.events.append({**event, "at": datetime.fromisoformat(event["time"]).timestamp()})

    def follow(self, event: str, count: int) -> list[float]:
        """Wait until this was told so many times; when."""
        await_all([self], event, count)
        return self.told(event)

    def spent_at(self, moment: float) -> float:
        """Processor seconds up to a moment, in between of those at which it was looked at."""
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

    def rest(self) -> None:
        """Let it stand still, all of its threads."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        """Let it go on."""
        self.process.send_signal(signal.SIGCONT)

    def stop(self) -> None:
        """Ask it to end, and wait."""
        self.process.send_signal(signal.SIGTERM)
        code = self.process.wait(PATIENCE)
        assert code == 0, self._log.read_text(encoding="utf-8")

    def kill(self) -> None:
        """Take it away at once."""
        self.process.kill()
        self.process.wait()


def await_all(lives: Sequence[Life], event: str, count: int) -> None:
    """Wait until the lives have told this so many times, all together."""
    deadline = time.monotonic() + PATIENCE
    while True:
        for life in lives:
            life.look()
        found = sum(len(life.told(event)) for life in lives)
        if found >= count:
            return
        if time.monotonic() > deadline:
            raise RuntimeError(f"{found} of {count} times {event!r}")
        time.sleep(_LOOK_SECONDS)
