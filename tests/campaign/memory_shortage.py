"""Processes without memory: they end with an error, and publish nothing incomplete."""

from __future__ import annotations

import signal
from collections import Counter

from tests.support.recovery.faulty_service import STEPS, FaultPoint
from tests.support.recovery.process_faults import FaultKind
from tests.support.recovery.stream_run import StreamRun


def run_out_of_memory(
    stream_run: StreamRun, kind: FaultKind, steps: tuple[str, ...] = STEPS
) -> str:
    """Run one process for every step, at which an allocation fails or no memory is left.

    Each ends by itself, with an error; returns how they ended.
    """
    ends: Counter[str] = Counter()
    for step in steps:
        # The fourth process of a snapshot's step finds fewer of them than the other steps.
        process = stream_run.start(FaultPoint(step, 1 if step == "snapshot sent" else 3), kind)
        code = process.wait()
        assert code != 0, process.failure(f"ended with exit code 0 at {step!r}")
        ends[signal.Signals(-code).name if code < 0 else f"exit {code}"] += 1
    return ", ".join(f"{end} × {count}" for end, count in sorted(ends.items()))
