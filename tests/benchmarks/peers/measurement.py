"""Wall-clock time of the service and of its peers.

Every program consumes the same filled topic, cuts it into chunks of 500, calls the same selector,
publishes the same rankings and keeps its state so that a restart continues. Each is a process of
its own, and a reader of committed records takes the time when rankings arrive: that of the chunks
after the tenth, without the start, from the end of a transaction to that of the last. They take
turns, and every ranking of every run is compared.

`restarts` checks their state: killed half way, every program continues.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.benchmarks.measure import Comparison
from tests.benchmarks.peers.catalogue import PEERS, SERVICE, Program
from tests.benchmarks.peers.peer_process import (
    Case,
    PublishedRanking,
    Timing,
    filled_topic,
    run,
    run_twice,
)

DEFAULT: Final[dict[str, Any]] = {"clusters": 10}
LIGHT: Final[dict[str, Any]] = {
    "clusters": 2,
    "min_iterations": 1,
    "max_iterations": 1,
    "reassignments": 0,
    "neighbours": 1,
    "sketch": 0,
}
"""The least work of the selector, so that other work is measured: two clusters, one iteration, no
reassignments, one neighbour, ranking by score alone."""

SMALL: Final = Case("small", 6, 40, LIGHT)
"""For trials and tests."""
CASES: Final = (
    Case("default selector", 125, 60, DEFAULT),
    Case("default selector", 1250, 30, DEFAULT),
    Case("light selector", 125, 210, LIGHT),
    Case("light selector", 1250, 110, LIGHT),
)


@dataclass
class Results:
    """The timings of all programs in a case, turn by turn."""

    case: Case
    timings: dict[str, list[Timing]] = field(default_factory=dict)

    def add(self, name: str, timing: Timing) -> None:
        """Add a timing. Raises if its rankings differ from those of the first one."""
        first = next(iter(self.timings.values()), [timing])[0]
        same(name, timing.rankings, first.rankings)
        self.timings.setdefault(name, []).append(timing)

    def comparisons(self, peers: Sequence[Program]) -> Iterator[Comparison]:
        """Comparisons by wall-clock time."""
        for peer in peers:
            ours, theirs = (
                tuple(timing.wall for timing in self.timings[name])
                for name in (SERVICE.name, peer.name)
            )
            yield Comparison(
                "peers", peer.name, str(self.case), "ours", "theirs", ours, theirs, peer.goal
            )

    def processors(self, peers: Sequence[Program]) -> Iterator[Comparison]:
        """Comparisons by processor time, which a busy machine changes less; waiting is free."""
        for peer in peers:
            ours, theirs = (
                tuple(timing.processor for timing in self.timings[name])
                for name in (SERVICE.name, peer.name)
            )
            yield Comparison("", peer.name, str(self.case), "ours", "theirs", ours, theirs)


def same(
    name: str, found: Sequence[PublishedRanking], expected: Sequence[PublishedRanking]
) -> None:
    """Raise if these are not the expected rankings, each once and in order."""
    numbers, wanted = (
        [ranking.sequence for ranking in found],
        [ranking.sequence for ranking in expected],
    )
    if numbers != wanted:
        raise RuntimeError(f"{name} published {numbers} instead of {wanted}")
    for one, other in zip(found, expected, strict=True):
        if one != other:
            raise RuntimeError(f"ranking {one.sequence} of {name} differs")


def restarts(bootstrap: str, case: Case, programs: Sequence[Program]) -> None:
    """Kill each program half way and restart it. Raises if its rankings are not as promised.

    Exactly once is every ranking once; at least once is every ranking, some of them again.
    """
    with filled_topic(bootstrap, case) as topic:
        expected = run(bootstrap, case, topic, SERVICE).rankings
        for program in (SERVICE, *programs):
            found = run_twice(bootstrap, case, topic, program)
            again = len(found) - len(expected)
            if not program.exactly_once:
                found = sorted(
                    {ranking.sequence: ranking for ranking in found}.values(), key=_sequence
                )
            same(program.name, found, expected)
            print(f"{program.name} continues, {again} rankings repeated", file=sys.stderr)


def _sequence(ranking: PublishedRanking) -> int:
    return ranking.sequence


def compare_with_peers(bootstrap: str, case: Case, turns: int) -> Iterator[Comparison]:
    """Compare the service with every available peer; the ratio is service over peer."""
    for peer in PEERS:
        if peer.missing is not None:
            print(f"{peer.name}: not available ({peer.missing})", file=sys.stderr)
    there = [peer for peer in PEERS if peer.missing is None]
    yield from measure(bootstrap, case, there, turns).comparisons(there)


def measure(bootstrap: str, case: Case, programs: Sequence[Program], turns: int) -> Results:
    """Measure so many turns of the service and these programs; the first one rotates."""
    results = Results(case)
    all_programs = [SERVICE, *programs]
    with filled_topic(bootstrap, case) as topic:
        for turn in range(turns):
            first = turn % len(all_programs)
            for program in all_programs[first:] + all_programs[:first]:
                timing = run(bootstrap, case, topic, program)
                results.add(program.name, timing)
                print(
                    f"{case}, turn {turn + 1}, {program.name}: "
                    f"{timing.wall:.2f} s, {timing.processor:.2f} s of processors",
                    file=sys.stderr,
                )
    return results
