"""Hostile bytes for every decoder: only errors of our own, and memory and time in proportion."""

from __future__ import annotations

import tempfile
from argparse import Namespace
from collections.abc import Iterator
from pathlib import Path

from tests.campaign.account import Account, AddArgument
from tests.hostile.crew import attack
from tests.hostile.growth import growths


def run(options: Namespace) -> Iterator[Account]:
    """One account for every decoder, and one for how they all grow."""
    for name, found in attack(options.inputs, options.seed, options.workers):
        shown = (
            f"{found.taken} taken, {found.refused} refused, {found.largest >> 10} kB at most, "
            f"slowest {1000 * found.slowest:.0f} ms"
        )
        yield Account(name, found.inputs, shown=shown, problems=tuple(found.faults))
    if options.growth:
        yield _growth()


def _growth() -> Account:
    with tempfile.TemporaryDirectory(prefix="stream-fs-hostile-") as folder:
        found = list(growths(Path(folder)))
    telling = [one for one in found if one.faults or one.large > 0.01]
    worst = max((one.large / one.small for one in telling), default=0.0)
    shown = f"{len(telling)} take over 10 ms, the steepest {worst:.1f} times as long"
    problems = tuple(fault for one in found for fault in one.faults)
    return Account("inputs four times as long", len(found), shown=shown, problems=problems)


def arguments(add: AddArgument) -> None:
    add("--inputs", type=int, default=1_000_000, help="hostile inputs, over all decoders")
    add("--workers", type=int, default=2, help="processes that try them")
    add("--growth", type=int, default=1, help="whether to compare inputs of n and 4n bytes (0, 1)")
