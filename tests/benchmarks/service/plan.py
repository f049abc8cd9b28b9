"""How much is measured: all of it, a quick look, or just enough to see that it works."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from tests.benchmarks.measure import Seconds, take_timed_turns


@dataclass(frozen=True)
class Plan:
    """Turns, and the sizes that the sections share."""

    turns: int
    warm_chunks: int
    """That the broker commits before anything is measured: it compiles itself meanwhile."""
    ingest: tuple[tuple[int, int], ...]
    """Bytes of a record, and how many are read in a turn."""
    chunks: int
    """Chunks that the service processes in a turn, without the first."""
    slice: int
    """Chunks of a turn where the service and its parts take turns within one process."""
    shared_chunks: int
    """The same of each partition where two processes share them: until the second one has its
    share, which takes seconds, the first works alone."""
    features: tuple[int, ...]
    """In all views together, where transactions are compared."""
    snapshot_bytes: int
    races: tuple[int, ...]
    """Numbers of the cases in which the service is compared with its peers."""
    growth_turns: int
    growth_length: int
    """Values of each size that is varied, at most."""
    growth_chunks: int
    growth_scale: float = 1.0
    growth_sweeps: tuple[str, ...] = ()
    """Beginnings of the names of the sizes that are varied; none is all."""
    warm_up: bool = True
    """Whether there is a turn that does not count."""

    def turns_of(
        self, runs: Mapping[str, Callable[[], float]], times: int = 1
    ) -> dict[str, Seconds]:
        """The seconds of these runs, turn by turn; `times` as many turns as usual."""
        return take_timed_turns(runs, times * self.turns, warm_up=self.warm_up)


FULL = Plan(
    turns=9,
    warm_chunks=4000,
    ingest=((1_000, 200_000), (10_000, 30_000)),
    chunks=60,
    slice=20,
    shared_chunks=120,
    features=(1_000, 10_000),
    snapshot_bytes=20_000_000,
    races=(0, 1, 2, 3),
    growth_turns=3,
    growth_length=4,
    growth_chunks=20,
)
QUICK = Plan(
    turns=3,
    warm_chunks=500,
    ingest=((1_000, 50_000), (10_000, 10_000)),
    chunks=10,
    slice=10,
    shared_chunks=80,
    features=(1_000, 10_000),
    snapshot_bytes=20_000_000,
    races=(2,),
    growth_turns=1,
    growth_length=2,
    growth_chunks=4,
)
TINY = Plan(
    turns=1,
    warm_chunks=2,
    ingest=((200, 1_000),),
    chunks=2,
    slice=2,
    shared_chunks=4,
    features=(60,),
    snapshot_bytes=100_000,
    races=(),
    growth_turns=1,
    growth_length=2,
    growth_chunks=2,
    growth_scale=0.05,
    growth_sweeps=("density", "tasks"),
    warm_up=False,
)
