"""What exactly once costs: chunks published in transactions against chunks merely produced.

The pipeline works in this process, on the same source, with everything else the same: reading,
update, ranking, encoding, the progress record with every chunk and a snapshot with every tenth.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

from stream_fs.pipeline.ports import Transport
from tests.benchmarks.measure import Comparison, Goal
from tests.benchmarks.service.input_topics import Source, Stream, Workspace
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.reading import CHUNK
from tests.benchmarks.service.records import Mix
from tests.benchmarks.service.working import PlainTransport, process_chunks, transactional

COST = Goal("≤", 1.1)
WORK = 60_000
"""Features times chunks of a turn, at most: wide chunks take long."""
SNAPSHOTS = 20
"""Chunks in which there are snapshots, too."""


def publishing(workspace: Workspace, plan: Plan) -> Iterator[Comparison]:
    """A chunk with its transaction against the same chunk with a plain producer."""
    for features in plan.features:
        mix = Mix(features // 2, views=2)
        chunks = min(plan.chunks, max(SNAPSHOTS, WORK // features))
        with workspace.source(mix, (1 + chunks) * CHUNK) as source:
            taken = plan.turns_of(
                {
                    "transactions": partial(_worked, workspace, source, transactional),
                    "plain": partial(_worked, workspace, source, PlainTransport),
                },
            )
        yield Comparison(
            "publishing",
            f"a chunk with its transaction, {features} features",
            f"{mix}, K 10, N {CHUNK}",
            "transactions",
            "plain produce and flush",
            taken["transactions"],
            taken["plain"],
            COST,
            chunks * CHUNK,
        )


def _worked(
    workspace: Workspace, source: Source, publisher: Callable[[Stream], Transport]
) -> float:
    with workspace.stream(source) as stream:
        return process_chunks(stream, publisher(stream))
