"""Reads and damages the state topic of a stream."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from confluent_kafka import KafkaError, Message, Producer

from stream_fs.checkpoint import (
    Progress,
    SnapshotPlace,
    StateKeys,
    decode_progress,
    encode_progress,
    read_manifest,
)
from tests.integration.service.stream import Stream
from tests.support.topics import flush

Record = tuple[bytes, bytes | None]
"""Key and value."""


@dataclass(frozen=True)
class State:
    """The last progress record, and the snapshots that it names, the newest first."""

    progress: Progress
    snapshots: tuple[tuple[Record, ...], ...]
    """Manifest first, then the parts."""


def state_keys(stream: Stream) -> StateKeys:
    """The keys of the only partition's state."""
    return stream.configuration().stream_settings().keys(stream.only)


def read_state(stream: Stream) -> State:
    records = stream.state()
    wanted = state_keys(stream).progress
    last = [record.value for record in records.values() if record.key == wanted][-1]
    progress = decode_progress(last or b"")
    return State(progress, tuple(tuple(_snapshot(stream, at)) for at in progress.snapshots))


def _snapshot(stream: Stream, at: SnapshotPlace) -> Iterator[Record]:
    records = stream.state()
    manifest = records[at.offset]
    keys = state_keys(stream)
    assert manifest.key == keys.manifest(at.slot)
    yield manifest.key, manifest.value
    for part in range(read_manifest(manifest.value or b"").parts):
        record = records[at.offset + 1 + part]
        assert record.key == keys.part(at.slot, part)
        yield record.key, record.value


def replace_snapshots(stream: Stream, state: State, *snapshots: Sequence[Record]) -> None:
    """Replace the newest ones by these, with a progress record that names them."""
    places = list(state.progress.snapshots)
    for index, records in enumerate(snapshots):
        first, *_ = _append(stream, records)
        places[index] = replace(places[index], offset=first)
    progress = replace(state.progress, snapshots=tuple(places))
    _append(stream, [(state_keys(stream).progress, encode_progress(progress))])


def _append(stream: Stream, records: Iterable[Record]) -> list[int]:
    """The offsets of the written records."""
    topic = stream.configuration().state_topics()[stream.only.topic]
    producer = Producer({"bootstrap.servers": stream.topics.bootstrap})
    offsets: list[int] = []

    def delivered(error: KafkaError | None, message: Message) -> None:
        assert error is None, error
        offset = message.offset()
        assert offset is not None
        offsets.append(offset)

    for key, value in records:
        producer.produce(topic, value, key, stream.only.number, on_delivery=delivered)
    flush(producer)
    return offsets
