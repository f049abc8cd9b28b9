"""Whether a process grows over a long time in which its share of the work changes."""

from __future__ import annotations

from collections import defaultdict
from statistics import median
from typing import NamedTuple

from tests.campaign.fault_result import FaultResult
from tests.campaign.resource_usage import Usage

LEAST_SAMPLES = 8
MOST = {"MB": 8.0, "threads": 2.0, "files": 4.0, "series": 10.0}
"""From the second quarter of the time to the last one; producers take a while to close,
and the first failure of a kind adds a series."""


class Sample(NamedTuple):
    """A sample of a process with so many partitions: its resources and metric series."""

    held: int
    usage: Usage
    series: int

    @property
    def figures(self) -> dict[str, float]:
        megabytes, threads, files = self.usage
        return {"MB": megabytes, "threads": threads, "files": files, "series": self.series}


class GrowthRecord:
    """Samples of one process; only those with equal numbers of partitions are compared."""

    def __init__(self) -> None:
        self._samples: defaultdict[int, list[Sample]] = defaultdict(list)

    def add(self, sample: Sample) -> None:
        self._samples[sample.held].append(sample)

    def found(self) -> dict[int, dict[str, tuple[float, float]]]:
        """By partitions held, of every figure the median of the second and of the last quarter."""
        return {
            held: {name: (_median(samples, name, 1), _median(samples, name, 3)) for name in MOST}
            for held, samples in sorted(self._samples.items())
            if held and len(samples) >= LEAST_SAMPLES
        }

    def result(self, fault: str, times: int) -> FaultResult:
        """The result: figures by partitions held, and those that have grown."""
        shown, wrong = [], []
        for held, figures in self.found().items():
            shown_text = ", ".join(
                f"{after:.0f} {name} ({after - before:+.1f})"
                for name, (before, after) in figures.items()
            )
            shown.append(f"with {held} partitions {shown_text}")
            wrong += [
                f"{name} have grown from {before:g} to {after:g} with {held} partitions"
                for name, (before, after) in figures.items()
                if after - before > MOST[name]
            ]
        return FaultResult(fault, times, shown="; ".join(shown), problems=tuple(wrong))


def _median(samples: list[Sample], name: str, quarter: int) -> float:
    count = len(samples)
    part = samples[quarter * count // 4 : (quarter + 1) * count // 4]
    return median(sample.figures[name] for sample in part)
