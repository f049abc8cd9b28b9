"""A replayed chunk has to end where it was committed; otherwise the replay is refused."""

from __future__ import annotations

from typing import Any

import pytest

from stream_fs.errors import BoundaryMoved
from stream_fs.pipeline.partition.running import Idle
from stream_fs.pipeline.partition.state import Committed
from stream_fs.records import Message
from stream_fs.wire.declared import Limits
from tests.support.memory_broker import MemoryBroker
from tests.support.simulated_process import (
    LETTERS,
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    records,
    settings,
)
from tests.support.simulated_process import published as seen

RESET = f"`stream-fs checkpoint reset --topic {TOPIC} --partition 0"
VALUES = list(records(150))
FULL = max(len(value) for value in VALUES)
WITHOUT_FULL = Limits(record_bytes=FULL - 1)
"""Limits under which records with both views are bad."""


def crashed(made: MemoryBroker, changes: dict[str, Any]) -> int:
    """Crash a process with chunks behind its last snapshot; the offset where they end."""
    process = SimulatedProcess(made, settings(**changes), ("updated", 3))
    assert not process.run()
    (task,) = process.worker.tasks
    assert isinstance(task._state, Idle)
    assert isinstance(task._state.base, Committed)
    progress = task._state.base.progress
    assert progress.snapshots[0].chunk < progress.chunk
    return progress.next_offset


@pytest.mark.parametrize(
    ("before", "after"),
    [({}, {"limits": WITHOUT_FULL}), ({"limits": WITHOUT_FULL}, {})],
    ids=["fewer records are good", "more records are good"],
)
def test_a_replay_that_ends_elsewhere_is_refused(
    before: dict[str, Any], after: dict[str, Any]
) -> None:
    made = broker()
    fill(made, VALUES)
    committed = crashed(made, before)
    before_refusal = seen(made), seen(made, LETTERS)
    with pytest.raises(BoundaryMoved) as caught:
        SimulatedProcess(made, settings(**after)).run()
    assert caught.value.committed == committed != caught.value.replayed
    for named in (
        f"offset {committed}",
        f"offset {caught.value.replayed}",
        f"{RESET} --keep-model --to-offset {committed}`",
        f"{RESET}`",
    ):
        assert named in str(caught.value)
    assert (seen(made), seen(made, LETTERS)) == before_refusal


def test_it_is_refused_before_the_chunk_is_full() -> None:
    """Behind the committed chunks there may be too few records to fill it for a long time."""
    made = broker()
    fill(made, VALUES)
    committed = crashed(made, {})
    found: list[Message] = made.committed(TOPIC)
    short = broker()
    fill(short, [message.value or b"" for message in found[: committed + 2]])
    short._topics = {**made._topics, TOPIC: short._topics[TOPIC]}
    with pytest.raises(BoundaryMoved):
        SimulatedProcess(short, settings(limits=WITHOUT_FULL)).run()
