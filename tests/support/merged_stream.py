"""A stream with several partitions in memory, and its merged rankings."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from stream_fs.pipeline.checkpoint_reader import read_usable_snapshot
from stream_fs.pipeline.model import Model, decode_model
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.state_owner import locate
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryTransport
from tests.support.simulated_process import (
    STATE,
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
    settings,
)

EVERY = 5.0
"""Seconds between merged rankings."""


def merging(**changes: Any) -> StreamSettings:
    return settings(**{"merge_every": EVERY, "output_top": 3, **changes})


def stream(partitions: int = 3, count: int = 60) -> MemoryBroker:
    """Records for every partition: 60 are three chunks, 60 more are seven; every third is saved."""
    made = broker(partitions)
    for number in range(partitions):
        more(made, number, count, seed=number)
    return made


def more(made: MemoryBroker, partition: int, count: int = 60, seed: int = 9) -> None:
    """More records for one partition."""
    fill(made, list(records(count, seed=seed)), partition)


def outsider(made: MemoryBroker) -> MemoryTransport:
    """The transport of another process of the group."""
    return MemoryTransport(made, "g", {TOPIC: STATE})


def give(
    made: MemoryBroker, *shares: tuple[SimulatedProcess, Sequence[int]], group: str = "g"
) -> None:
    """Let the group assign exactly these partitions."""
    by_member = {id(process.worker._input): numbers for process, numbers in shares}

    def share(_: str, member: object) -> list[Partition]:
        return [Partition(TOPIC, number) for number in by_member.get(id(member), [])]

    made.assignment = share  # type: ignore[method-assign, assignment]  # in place of the even one
    made.rebalance(group)


def settle(process: SimulatedProcess, rounds: int = 2) -> None:
    """Run until there is nothing to do, with so many refreshes of the merge."""
    for _ in range(rounds):
        assert process.run(120)
        process.now += EVERY
    assert process.run(80)


def merged_rankings(made: MemoryBroker) -> list[dict[str, Any]]:
    """All merged rankings, in order."""
    found = [json.loads(value) for _, value, _ in published(made)]
    return [ranking for ranking in found if ranking["scope"] == "merged"]


def sequences(made: MemoryBroker) -> list[int]:
    return [ranking["sequence"] for ranking in merged_rankings(made)]


def sources(ranking: dict[str, Any]) -> dict[int, int]:
    """Sequences by partition."""
    return {source["partition"]: source["sequence"] for source in ranking["sources"]}


def last_sources(made: MemoryBroker) -> dict[int, int]:
    return sources(merged_rankings(made)[-1])


def places(count: int) -> list[Partition]:
    return [Partition(TOPIC, number) for number in range(count)]


def saved_model(made: MemoryBroker, place: Partition) -> Model:
    """The model of the newest snapshot."""
    log = outsider(made).state_log(place)
    found = _end(locate(log, place, settings().owner, lambda _: None))
    return decode_model(
        _end(read_usable_snapshot(log, found.keys, found.progress, settings().params))[0]
    )


def _end(steps: Any) -> Any:
    try:
        while True:
            next(steps)
    except StopIteration as end:
        return end.value
