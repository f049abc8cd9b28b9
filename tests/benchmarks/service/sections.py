"""What there is to measure, in order. A section yields comparisons, or growths, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Final, NamedTuple, TypeAlias

from tests.benchmarks.growth import Growth
from tests.benchmarks.measure import Comparison
from tests.benchmarks.peers.contest import CASES, race
from tests.benchmarks.service.floors import reading, whole
from tests.benchmarks.service.growing import growing
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.publishing import publishing
from tests.benchmarks.service.restoring import restoring
from tests.benchmarks.service.sharing import sharing
from tests.benchmarks.service.stage import Stage
from tests.benchmarks.service.starting import starting

Figure: TypeAlias = Comparison | Growth


class Section(NamedTuple):
    """A name to choose it by, what stands above its table, and what measures it."""

    name: str
    heading: str
    run: Callable[[Stage, Plan], Iterable[Figure]]


def peers(stage: Stage, plan: Plan) -> Iterator[Comparison]:
    """The service beside Quix Streams, Bytewax and plain loops."""
    for number in plan.races:
        yield from race(stage.bootstrap, CASES[number], plan.turns)


SECTIONS: Final = (
    Section("reading", "Reading: a topic into chunks", reading),
    Section("whole", "End to end", whole),
    Section("publishing", "Exactly once", publishing),
    Section("restoring", "Restore", restoring),
    Section("sharing", "More processes", sharing),
    Section("starting", "Start, and start after a kill", starting),
    Section("peers", "The same work by peers (seconds of ours over theirs)", peers),
    Section("growing", "Growth", growing),
)
