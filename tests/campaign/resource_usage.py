"""Memory, threads and files of a process (Linux), and the series of its metrics page."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from statistics import median
from typing import NamedTuple
from urllib.request import urlopen

from tests.support.recovery.service_process import TIMEOUT_SECONDS, ServiceProcess


class Usage(NamedTuple):
    """Resources of one process at one time."""

    megabytes: float
    """Resident memory."""
    threads: int
    files: int
    """Open file descriptors."""


def usage(pid: int) -> Usage:
    process = Path("/proc") / str(pid)
    lines = (process / "status").read_text(encoding="utf-8").splitlines()
    fields = dict(line.split(":", 1) for line in lines if ":" in line)
    files = sum(1 for _ in (process / "fd").iterdir())
    return Usage(int(fields["VmRSS"].split()[0]) / 1024, int(fields["Threads"]), files)


def peak(pid: int) -> float:
    """Peak resident memory in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    (line,) = [line for line in status.splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1]) / 1024


class Flatness(NamedTuple):
    """Samples of a long run, at even distances, after the first quarter of them, the warm-up."""

    samples: list[Usage]

    @property
    def growth(self) -> float:
        """Megabytes between the medians of the second and of the last quarter."""
        return self._median(3) - self._median(1)

    @property
    def spread(self) -> float:
        """Megabytes between the least and the most."""
        memory = [sample.megabytes for sample in self._warm]
        return max(memory) - min(memory)

    @property
    def slope(self) -> float:
        """Megabytes from one sample to the next, by least squares."""
        memory = [sample.megabytes for sample in self._warm]
        middle, mean = (len(memory) - 1) / 2, sum(memory) / len(memory)
        products = sum((x - middle) * (y - mean) for x, y in enumerate(memory))
        return products / sum((x - middle) ** 2 for x in range(len(memory)))

    @property
    def more_threads(self) -> int:
        """The least threads of the last quarter minus the most of the second."""
        return min(s.threads for s in self.quarter(3)) - max(s.threads for s in self.quarter(1))

    @property
    def more_files(self) -> int:
        """The least open files of the last quarter minus the most of the second."""
        return min(s.files for s in self.quarter(3)) - max(s.files for s in self.quarter(1))

    def quarter(self, number: int) -> list[Usage]:
        """The samples of a quarter, counted from 0."""
        count = len(self.samples)
        return self.samples[number * count // 4 : (number + 1) * count // 4]

    @property
    def _warm(self) -> list[Usage]:
        return self.samples[len(self.samples) // 4 :]

    def _median(self, quarter: int) -> float:
        return median(sample.megabytes for sample in self.quarter(quarter))


def address(process: ServiceProcess) -> str:
    """The address of its HTTP server."""
    process.until(lambda: bool(process.log("listening")), "a page")
    (listening,) = process.log("listening")
    return str(listening["address"])


def series(process: ServiceProcess) -> list[str]:
    """The series on the metrics page of a process, without their values."""
    return series_at(address(process))


def lasting(series: Iterable[str]) -> set[str]:
    """The series that exist as long as their partition is owned.

    Without those of outcomes: a replay or a failed transaction adds one, and a restart removes it.
    """
    return {name for name in series if 'outcome="' not in name}


def series_at(pages: str) -> list[str]:
    """The series on the metrics page of a process at this address."""
    with urlopen(f"{pages}/metrics", timeout=TIMEOUT_SECONDS) as page:
        lines = page.read().decode().splitlines()
    return [line.rpartition(" ")[0] for line in lines if not line.startswith("#")]
