"""The service against its peers, by the clock on the wall.

Everybody consumes the same topic, which was filled before, cuts it into chunks of 500, calls the
same selector, publishes the same rankings and keeps its state so that a restart continues. Each is
a process of its own, and a reader of committed records looks at the clock when rankings come: the
time is that of the chunks behind the tenth, so that starting up does not count, from the end of a
transaction to that of the last. They take turns, and every ranking of every run is compared.

`restarts` shows that what they keep is enough: killed half way, everybody goes on.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from tests.benchmarks.measure import Comparison
from tests.benchmarks.peers.catalogue import PEERS, SERVICE, Contestant
from tests.benchmarks.peers.peer_process import Case, Finish, Seen, filled_topic, run, run_twice

DEFAULT: Final[dict[str, Any]] = {"clusters": 10}
LIGHT: Final[dict[str, Any]] = {
    "clusters": 2,
    "min_iterations": 1,
    "max_iterations": 1,
    "reassignments": 0,
    "neighbours": 1,
    "sketch": 0,
}
"""The least that the selector can be asked for, so that the work beside it shows: two clusters, one
iteration, no reassignments, one neighbour, ranking by score alone."""

SMALL: Final = Case("small", 6, 40, LIGHT)
"""To try it."""
CASES: Final = (
    Case("default selector", 125, 60, DEFAULT),
    Case("default selector", 1250, 30, DEFAULT),
    Case("light selector", 125, 210, LIGHT),
    Case("light selector", 1250, 110, LIGHT),
)


@dataclass
class Results:
    """Everybody's finishes in a case, turn by turn."""

    case: Case
    finishes: dict[str, list[Finish]] = field(default_factory=dict)

    def add(self, name: str, finish: Finish) -> None:
        """Note a finish. Raises where its rankings are not those of the first one."""
        first = next(iter(self.finishes.values()), [finish])[0]
        same(name, finish.rankings, first.rankings)
        self.finishes.setdefault(name, []).append(finish)

    def comparisons(self, peers: Sequence[Contestant]) -> Iterator[Comparison]:
        """By the clock on the wall: what the contest is about."""
        for peer in peers:
            ours, theirs = (
                tuple(finish.wall for finish in self.finishes[name])
                for name in (SERVICE.name, peer.name)
            )
            yield Comparison(
                "peers", peer.name, str(self.case), "ours", "theirs", ours, theirs, peer.goal
            )

    def processors(self, peers: Sequence[Contestant]) -> Iterator[Comparison]:
        """By the time of processors: a busy machine changes it less, and waiting is free."""
        for peer in peers:
            ours, theirs = (
                tuple(finish.processor for finish in self.finishes[name])
                for name in (SERVICE.name, peer.name)
            )
            yield Comparison("", peer.name, str(self.case), "ours", "theirs", ours, theirs)


def same(name: str, found: Sequence[Seen], expected: Sequence[Seen]) -> None:
    """Raise where these are not the expected rankings, each once and in turn."""
    numbers, wanted = [seen.sequence for seen in found], [seen.sequence for seen in expected]
    if numbers != wanted:
        raise RuntimeError(f"{name} has published {numbers} in place of {wanted}")
    for one, other in zip(found, expected, strict=True):
        if one != other:
            raise RuntimeError(f"ranking {one.sequence} of {name} is another one")


def restarts(bootstrap: str, case: Case, contestants: Sequence[Contestant]) -> None:
    """Kill each half way and start it again. Raises where it does not go on as it has promised.

    Exactly once is every ranking once; at least once is every ranking, some of them again.
    """
    with filled_topic(bootstrap, case) as topic:
        expected = run(bootstrap, case, topic, SERVICE).rankings
        for contestant in (SERVICE, *contestants):
            found = run_twice(bootstrap, case, topic, contestant)
            again = len(found) - len(expected)
            if not contestant.exactly_once:
                found = sorted({seen.sequence: seen for seen in found}.values(), key=_number)
            same(contestant.name, found, expected)
            print(f"{contestant.name} goes on, {again} rankings again", file=sys.stderr)


def _number(seen: Seen) -> int:
    return seen.sequence


def race(bootstrap: str, case: Case, turns: int) -> Iterator[Comparison]:
    """The service against everybody who can be had here; the ratio is ours over theirs."""
    for peer in PEERS:
        if peer.missing is not None:
            print(f"{peer.name}: not here ({peer.missing})", file=sys.stderr)
    there = [peer for peer in PEERS if peer.missing is None]
    yield from contest(bootstrap, case, there, turns).comparisons(there)


def contest(bootstrap: str, case: Case, contestants: Sequence[Contestant], turns: int) -> Results:
    """So many turns of the service and these; who begins goes round."""
    results = Results(case)
    everybody = [SERVICE, *contestants]
    with filled_topic(bootstrap, case) as topic:
        for turn in range(turns):
            first = turn % len(everybody)
            for contestant in everybody[first:] + everybody[:first]:
                finish = run(bootstrap, case, topic, contestant)
                results.add(contestant.name, finish)
                print(
                    f"{case}, turn {turn + 1}, {contestant.name}: "
                    f"{finish.wall:.2f} s, {finish.processor:.2f} s of processors",
                    file=sys.stderr,
                )
    return results
