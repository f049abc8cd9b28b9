"""The output of an undisturbed process for the same input, computed in memory."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from jsonschema import Draft202012Validator

from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.transaction import Runtime
from stream_fs.pipeline.worker import Worker
from stream_fs.records import Message
from tests.contracts.backend import Published
from tests.integration.service.stream import Changes, Output, Stream, origin, ranked
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryTransport

_SCHEMAS: Final = Path(__file__).parents[3] / "schemas"


def undisturbed(stream: Stream, changes: Changes | None = None) -> tuple[Output, Output]:
    """The rankings and the dead letters for what was fed so far."""
    configuration = stream.configuration(changes)
    settings = configuration.stream_settings()
    broker = MemoryBroker()
    for topic in stream.inputs:
        count = sum(partition.topic == topic for partition in stream.partitions)
        broker.create(topic, count)
        broker.create(settings.state_topics[topic], count)
    broker.create(settings.rankings_topic, 1)
    broker.create(settings.dead_letter_topic, 1)
    for partition, messages in stream.fed.items():
        for message in messages:
            broker.produce(
                partition.topic,
                message.value,
                partition=partition.number,
                key=message.key,
                headers=message.headers,
                timestamp=message.timestamp,
            )
    now = iter(range(10**9))
    worker = Worker(
        stream.inputs,
        settings,
        MemoryTransport(broker, "reference", settings.state_topics),
        Runtime(lambda: next(now), lambda _: None),
        jitter=lambda: 1.0,
        grace=1.0,
    )
    quiet, seen = 0, -1
    # A flood of bad records takes many turns that publish nothing.
    enough = 10 + sum(map(len, stream.fed.values())) // 50
    while quiet < enough:
        worker.run_once()
        now_seen = len(broker.committed(settings.rankings_topic))
        quiet, seen = (quiet + 1 if now_seen == seen and worker.ready else 0), now_seen
    rankings: dict[Partition, list[Published]] = {place: [] for place in stream.partitions}
    for message in broker.committed(settings.rankings_topic):
        if (place := ranked(_published(message))) is not None:
            rankings[place].append(_published(message))
    letters: dict[Partition, list[Published]] = {place: [] for place in stream.partitions}
    for message in broker.committed(settings.dead_letter_topic):
        letters[origin(_published(message))].append(_published(message))
    return rankings, letters


def assert_undisturbed(stream: Stream, chunks: int, changes: Changes | None = None) -> None:
    """Every partition has so many rankings, and all output is that of an undisturbed process.

    That is: as if a single process had done all the work without a break, byte for byte.
    """
    rankings = stream.rankings()
    for partition, published in rankings.items():
        _check_sequence(partition, published, chunks)
    letters = stream.letters()
    for letter in (letter for found in letters.values() for letter in found):
        headers = {name: (value or b"").decode() for name, value in letter.headers}
        _valid("dead-letter-headers.v1.json", headers)
    expected_rankings, expected_letters = undisturbed(stream, changes)
    assert rankings == expected_rankings
    assert letters == expected_letters


def _check_sequence(partition: Partition, published: Sequence[Published], chunks: int) -> None:
    """Check as a subscriber that nothing is missing or duplicated."""
    values = [json.loads(found.value or b"") for found in published]
    for value in values:
        _valid("ranking.v1.json", value)
    assert [value["sequence"] for value in values] == list(range(1, chunks + 1)), partition
    following = 0
    for value in values:
        assert value["offsets"]["from"] == following
        following = value["offsets"]["next"]


def _valid(schema: str, document: Any) -> None:
    Draft202012Validator(json.loads((_SCHEMAS / schema).read_text())).validate(document)


def _published(message: Message) -> Published:
    return Published(message.key, message.value, message.headers)
