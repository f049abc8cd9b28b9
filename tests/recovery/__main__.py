"""The long form of the proof: ``python -m tests.recovery --kills 25``.

Works through a stream once undisturbed, and then once for every fault with processes that suffer
it, and prints how what was published differs. Exit code 1 when it does.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

from stream_fs.broker import running_broker
from tests.benchmarks.table import aligned
from tests.recovery.comparison import Comparison, Published
from tests.recovery.faults import (
    POINTS,
    Point,
    end_randomly,
    kill_at,
    kill_randomly,
    overtake,
    stop_often,
)
from tests.recovery.journey import Journey
from tests.recovery.stage import Stage, stage
from tests.recovery.starting import Fresh
from tests.recovery.subscriber import problems

TITLES = (
    "fault", "times", "rankings", "dead letters", "differing bytes", "lost", "duplicated",
    "misplaced", "problems",
)  # fmt: skip
STOP_CHUNKS = 6
"""Between orderly ends: no multiple of the chunks between snapshots."""


class Fault(NamedTuple):
    """What a journey suffers, and how often."""

    name: str
    times: int
    inflict: Callable[[Journey], None]


class Row(NamedTuple):
    """What became of a journey."""

    fault: Fault
    rankings: Comparison
    letters: Comparison
    problems: list[str]

    @property
    def right(self) -> bool:
        return self.rankings.same and self.letters.same and not self.problems

    def cells(self) -> list[str]:
        both = self.rankings + self.letters
        counts = (both.differing_bytes, both.lost, both.duplicated, both.misplaced)
        compared = (self.rankings.compared, self.letters.compared)
        numbers = (self.fault.times, *compared, *counts, len(self.problems))
        return [self.fault.name, *map(str, numbers)]


def kill_again_and_again(journey: Journey, point: Point, times: int) -> None:
    committed = 0
    for _ in range(times):
        committed = kill_at(journey, point, committed)


def overtake_again_and_again(journey: Journey, times: int) -> None:
    for _ in range(times):
        overtake(journey)


def faults(options: argparse.Namespace) -> Iterator[Fault]:
    """All of them; what chance decides follows from the seed."""
    chance = random.Random(options.seed)
    for point in POINTS:
        inflict = partial(kill_again_and_again, point=point, times=options.rounds)
        yield Fault(f"SIGKILL when {point}", options.rounds, inflict)
    few = max(1, options.kills // 5)
    at_random = partial(kill_randomly, kills=options.kills, chance=chance)
    yield Fault("SIGKILL at random", options.kills, at_random)
    at_the_end = partial(end_randomly, times=few, chance=chance)
    yield Fault("SIGKILL while it ends", few, at_the_end)
    yield Fault("SIGSTOP, overtaken, SIGCONT", few, partial(overtake_again_and_again, times=few))
    yield Fault("SIGTERM", few, partial(stop_often, times=few, chunks=STOP_CHUNKS))


def suffer(staged: Stage, fault: Fault, number: int) -> Row:
    """One journey."""
    with staged.journey(f"fault-{number}") as journey:
        try:
            fault.inflict(journey)
            found = journey.complete()
        except (AssertionError, TimeoutError) as error:
            found = Published(journey.rankings.messages, journey.letters.messages)
            return Row(fault, *found.against(staged.expected), [str(error)])
    gaps = problems(message.value for message in found.rankings)
    return Row(fault, *found.against(staged.expected), gaps)


def main() -> int:
    options = parse()
    rows = []
    with (
        tempfile.TemporaryDirectory(prefix="stream-fs-recovery-") as folder,
        running_broker() as broker,
        stage(broker, Path(folder), options.chunks, Fresh) as staged,
    ):
        for number, fault in enumerate(faults(options)):
            print(f"{fault.name}, {fault.times} times", file=sys.stderr, flush=True)
            rows.append(suffer(staged, fault, number))
    print("\n".join(aligned(TITLES, [row.cells() for row in rows])))
    for row in rows:
        for problem in row.problems:
            print(f"{row.fault.name}: {problem}")
    return 0 if all(row.right for row in rows) else 1


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.recovery", description=__doc__)
    add = parser.add_argument
    add("--kills", type=int, default=25, help="SIGKILLs at random moments (default: 25)")
    add("--rounds", type=int, default=3, help="SIGKILLs at every fault point (default: 3)")
    add("--chunks", type=int, default=200, help="chunks in the stream (default: 200)")
    add("--seed", type=int, default=0, help="of what chance decides (default: 0)")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
