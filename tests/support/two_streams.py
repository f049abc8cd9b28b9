"""Two streams on one input topic, with their states and the commands of an operator."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stream_fs.errors import (
    ForeignState,
)
from stream_fs.pipeline.administration import (
    export_model,
    reset,
)
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import StreamSettings
from tests.support.legacy_state import write_state
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

PLACE = Partition(TOPIC, 0)
VALUES = list(records(120))
BLUE = settings(stream="blue", group="blue", rankings_topic="out")
TEAL = settings(stream="teal", group="teal", rankings_topic="out")


def transport(made: MemoryBroker, of: StreamSettings) -> MemoryTransport:
    return MemoryTransport(made, of.group, of.state_topics, of.stream)


def rankings(made: MemoryBroker, of: StreamSettings) -> list[dict[str, Any]]:
    found = [json.loads(value) for _, value, _ in published(made)]
    return [ranking for ranking in found if ranking["stream"] == of.stream]


def refuse(made: MemoryBroker, of: StreamSettings, refusal: str) -> None:
    """A process starts, and is refused."""
    process = SimulatedProcess(made, of)
    with pytest.raises(ForeignState, match=refusal):
        process.run()
    process.kill()


def reset_state(made: MemoryBroker, of: StreamSettings, partition: Partition = PLACE) -> str | None:
    return reset(transport(made, of), of, partition)


def begun(of: StreamSettings, count: int = 60) -> MemoryBroker:
    """A stream has processed some records, and its process has ended."""
    made = broker()
    fill(made, VALUES[:count])
    process = SimulatedProcess(made, of)
    assert process.run()
    process.kill()
    return made


def legacy(of: StreamSettings, count: int = 60) -> MemoryBroker:
    """All records, and the legacy state of a stream that has published some chunks of them."""
    made = broker()
    fill(made, VALUES)
    export = export_model(transport(begun(of, count), of), of, PLACE)
    write_state(made, PLACE, export)
    made.commit_group_offsets(of.group, {PLACE: export.progress.next_offset})
    return made


def last(made: MemoryBroker, key: bytes) -> bytes:
    return [m.value for m in made.committed(STATE) if m.key == key][-1] or b""
