"""What there is to measure, in order. A section yields comparisons, or growths, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Final, NamedTuple, TypeAlias

from tests.benchmarks.growth import Growth
from tests.benchmarks.measure import Comparison
from tests.benchmarks.peers.catalogue import PEERS
from tests.benchmarks.peers.environment import versions
from tests.benchmarks.peers.measurement import CASES, compare_with_peers
from tests.benchmarks.service.floors import reading, whole
from tests.benchmarks.service.growing import growing
from tests.benchmarks.service.input_topics import Workspace
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.publishing import publishing
from tests.benchmarks.service.restoring import restoring
from tests.benchmarks.service.sharing import sharing
from tests.benchmarks.service.starting import starting

Figure: TypeAlias = Comparison | Growth


class Section(NamedTuple):
    """A name to choose it by, what stands above its table, and what measures it."""

    name: str
    heading: str
    run: Callable[[Workspace, Plan], Iterable[Figure]]
    versions: Callable[[], Mapping[str, str]] = dict
    """Further libraries that it compares with."""


def peers(workspace: Workspace, plan: Plan) -> Iterator[Comparison]:
    """The service beside Quix Streams, Bytewax and plain loops."""
    for number in plan.races:
        yield from compare_with_peers(workspace.bootstrap, CASES[number], plan.turns)


def peers_versions() -> dict[str, str]:
    """Of the frameworks that the peers are written with."""
    return versions(dict.fromkeys(peer.framework for peer in PEERS if peer.framework is not None))


SECTIONS: Final = (
    Section("reading", "Reading: a topic into chunks", reading),
    Section("whole", "End to end", whole),
    Section("publishing", "Exactly once", publishing),
    Section("restoring", "Restore", restoring),
    Section("sharing", "More processes", sharing),
    Section("starting", "Start, and start after a kill", starting),
    Section("peers", "The same work by peers (seconds of ours over theirs)", peers, peers_versions),
    Section("growing", "Growth", growing),
)
