"""Compares merged rankings with those computed from the input.

When a merged ranking appears depends on the clock, so two runs have different ones. But each is
a function of the partition models that it lists and of the merged ranking before it: the models are
computed from the input, and every byte is compared.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, TopicPartition

from stream_fs.checkpoint import MergeProgress
from stream_fs.pipeline.chunker import Chunker
from stream_fs.pipeline.merge.message import build_merged_ranking
from stream_fs.pipeline.model import Model, update_chunk
from stream_fs.pipeline.partition.commit import build_messages
from stream_fs.pipeline.ports import Partition
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.records import Message
from stream_fs.selector import initial_state
from stream_fs.service.configuration import load
from stream_fs.wire.records.decoder import RecordDecoder
from tests.support.recovery.comparison import Comparison, compare, ranking_name
from tests.support.recovery.subscriber import Received
from tests.support.topics import TIMEOUT_SECONDS, end_of

_BATCH = 50
"""Messages at a time: the bad ones of all at once would exceed the limit."""


def merged_rankings(messages: Sequence[Received]) -> list[Received]:
    """The merged rankings; their key is the name of the stream."""
    return [message for message in messages if b"/" not in (message.key or b"")]


def compare_with_input(bootstrap: str, config: Path, messages: Sequence[Received]) -> Comparison:
    """Compare all merged rankings of a stream."""
    settings = load(config, {}).stream_settings()
    found = merged_rankings(messages)
    (topic,) = settings.state_topics
    models = _all_models(bootstrap, topic, settings)
    return compare(list(_expected(found, models, topic, settings)), found, ranking_name)


def _expected(
    found: Sequence[Received],
    models: Mapping[tuple[Partition, int], Model],
    topic: str,
    settings: StreamSettings,
) -> Iterator[Received]:
    """The expected message for each one found."""
    before: MergeProgress | None = None
    for message in found:
        sources = json.loads(message.value or b"")["sources"]
        listed = {Partition(s["topic"], s["partition"]): s["sequence"] for s in sources}
        parts = {place: models[place, sequence] for place, sequence in listed.items()}
        made = build_merged_ranking(settings, Partition(topic, 0), parts, before)
        before = made.progress
        sent, _ = made.records
        yield Received(sent.key, sent.value, sent.headers)


def _all_models(
    bootstrap: str, topic: str, settings: StreamSettings
) -> dict[tuple[Partition, int], Model]:
    """The model of every partition after each of its chunks."""
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "unused", "log_level": 0})
    try:
        numbers = consumer.list_topics(topic, TIMEOUT_SECONDS).topics[topic].partitions
        return {
            (place, model.state.chunk): model
            for place in (Partition(topic, number) for number in numbers)
            for model in _models(_messages(consumer, place), place, settings)
        }
    finally:
        consumer.close()


def _models(
    messages: Sequence[Message], place: Partition, settings: StreamSettings
) -> Iterator[Model]:
    chunker = Chunker(RecordDecoder(settings.views), settings.dead_letters, 0, settled=0)
    policy = settings.chunk_policy
    model = Model(initial_state(settings.params, settings.origin(place)), 0, None, policy)
    for start in range(0, len(messages), _BATCH):
        chunker.add(messages[start : start + _BATCH])
        while (ready := chunker.take(model.state.chunk + 1, policy)) is not None:
            model = build_messages(
                settings, place, model, update_chunk(model.state, ready, policy)
            ).model
            yield model


def _messages(consumer: Consumer, place: Partition) -> list[Message]:
    """All messages of an input partition."""
    at = TopicPartition(place.topic, place.number, 0)
    end = end_of(consumer, place.topic, place.number)
    found: list[Message] = []
    if end:
        consumer.assign([at])
    while len(found) < end:
        batch = consumer.consume(min(500, end - len(found)), TIMEOUT_SECONDS)
        if not batch:
            raise TimeoutError(f"{place}: {len(found)} of {end} messages")
        for message in batch:
            if (error := message.error()) is not None:
                raise KafkaException(error)
            headers = tuple(message.headers() or ())
            stamp = message.timestamp()[1]
            offset = message.offset()
            assert offset == len(found), f"{place} has no offset {len(found)}"
            found.append(
                Message(*place, offset, stamp, message.key(), message.value(), headers)  # type: ignore[arg-type]  # bytes, as they were sent
            )
    return found
