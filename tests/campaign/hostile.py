"""Hostile bytes for every decoder: only errors of stream_fs, memory and time in proportion."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from tests.campaign.fault_result import AddArgument, FaultResult
from tests.hostile import runner
from tests.hostile.growth import growths


def run(options: Namespace) -> Iterator[FaultResult]:
    """One result per decoder, and one for the growth of their time."""
    for name, findings in runner.run(options.inputs, options.seed, options.workers):
        shown = (
            f"{findings.accepted} accepted, {findings.rejected} rejected, "
            f"{findings.largest >> 10} kB at most, slowest {1000 * findings.slowest:.0f} ms"
        )
        yield FaultResult(name, findings.inputs, shown=shown, problems=tuple(findings.faults))
    if options.growth:
        yield _growth()


def _growth() -> FaultResult:
    with tempfile.TemporaryDirectory(prefix="stream-fs-hostile-") as folder:
        measured = list(growths(Path(folder)))
    slow = [growth for growth in measured if growth.faults or growth.large > 0.01]
    worst = max((growth.large / growth.small for growth in slow), default=0.0)
    shown = f"{len(slow)} take over 10 ms, the steepest {worst:.1f} times as long"
    problems = tuple(fault for growth in measured for fault in growth.faults)
    return FaultResult("inputs four times as long", len(measured), shown=shown, problems=problems)


def arguments(add: AddArgument) -> None:
    add("--inputs", type=int, default=1_000_000, help="hostile inputs, over all decoders")
    add("--workers", type=int, default=2, help="processes that decode them")
    add("--growth", type=int, default=1, help="whether to compare inputs of n and 4n bytes (0, 1)")
