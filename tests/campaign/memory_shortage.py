"""Processes without memory: they may end in any way but one that publishes something half-made."""

from __future__ import annotations

import signal
from collections import Counter

from tests.support.recovery.faulty_service import STEPS, Moment
from tests.support.recovery.process_faults import Happening
from tests.support.recovery.stream_run import Journey


def run_out_of_memory(journey: Journey, what: Happening, steps: tuple[str, ...] = STEPS) -> str:
    """A life for every step, at which an allocation fails, or there is no memory any more.

    Each ends by itself, and with an error; how, is told.
    """
    ends: Counter[str] = Counter()
    for step in steps:
        # The fourth life of a snapshot's step finds fewer of them than the other steps.
        life = journey.start(Moment(step, 1 if step == "snapshot sent" else 3), what)
        code = life.ends()
        assert code != 0, life.wrong(f"has ended as if all were well at {step!r}")
        ends[signal.Signals(-code).name if code < 0 else f"exit {code}"] += 1
    return ", ".join(f"{end} × {count}" for end, count in sorted(ends.items()))
