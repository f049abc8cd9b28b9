"""With a damaged snapshot the one before it is restored, and the output does not change."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import pytest

from stream_fs.errors import CorruptSnapshot, UnknownSnapshotVersion
from stream_fs.kafka import Topics as KafkaTopics
from stream_fs.pipeline import events
from stream_fs.service.topics import topic_problems
from stream_fs.wire.records.encoder import encode_record
from tests.integration.service.conftest import MakeMember, MakeStream
from tests.integration.service.damages import (
    altered,
    altered_manifest,
    of_another_release,
    removed,
    torn,
    without_parts,
)
from tests.integration.service.state import Record, read_state, replace_snapshots
from tests.integration.service.stream import CHUNK, FIRST, Changes, Stream, chunks
from tests.integration.service.undisturbed import assert_undisturbed

DAMAGES: list[tuple[Callable[[Sequence[Record]], Sequence[Record]], str]] = [
    (torn, "the parts of the snapshot have"),
    (altered, "the checksum of the parts of the snapshot does not match"),
    (altered_manifest, "the manifest of the snapshot cannot be used"),
    (without_parts, "the snapshot has 0 of its 1 parts"),
    (removed, "there is no snapshot at offset"),
]

WIDE: Changes = {
    "views": [{"name": "wide", "dimension": 10_000}],
    "output.top": 5,
    "checkpoint.every_chunks": 1,
}
SMALL: Changes = {"kafka.largest_message": 60_000, "limits.record_bytes": 60_000}


def wide(count: int) -> list[bytes]:
    """Records of so many features that the model does not fit into a message."""
    rng = np.random.default_rng(0)
    return [encode_record({"wide": rng.random(10_000, np.float32)}) for _ in range(count)]


@pytest.fixture
def crashed(stream: Stream, member: MakeMember) -> Stream:
    """Snapshots after chunks 1 and 4, and progress after chunk 5."""
    stream.feed(chunks(5))
    first = member(stream)
    first.completes(5)
    first.kill()
    assert [place.chunk for place in read_state(stream).progress.snapshots] == [4, 1]
    return stream


def test_the_snapshot_before_a_damaged_one_is_restored(crashed: Stream, member: MakeMember) -> None:
    state = read_state(crashed)
    for damage, reason in DAMAGES:
        replace_snapshots(crashed, state, damage(state.snapshots[0]))
        second = member(crashed)
        second.runs()
        (restored,) = second.of(events.Restored)
        assert (restored.chunk, restored.behind) == (1, 4)
        assert restored.fallback is not None
        assert reason in restored.fallback
        assert [event.replayed for event in second.of(events.ChunkUpdated)] == [True] * 4
        assert not second.of(events.ReplayDiverged)
        second.kill()
    crashed.feed(chunks(8)[len(chunks(5)) :])
    last = member(crashed)
    last.completes(8)
    last.kill()
    assert_undisturbed(crashed, 8)
    # The intact one is still there, beside the replacement of the damaged one.
    assert [place.chunk for place in read_state(crashed).progress.snapshots] == [6, 1]
    third = member(crashed)
    third.runs()
    (restored,) = third.of(events.Restored)
    assert (restored.chunk, restored.behind, restored.fallback) == (6, 2, None)


def test_without_a_complete_snapshot_the_service_stops(crashed: Stream, member: MakeMember) -> None:
    state = read_state(crashed)
    newest, older = state.snapshots
    replace_snapshots(crashed, state, torn(newest), removed(older))
    second = member(crashed)
    with pytest.raises(CorruptSnapshot) as caught:
        second.runs()
    assert f"no snapshot of {crashed.only} can be used" in str(caught.value)
    assert "the parts of the snapshot have" in str(caught.value)
    assert "there is no snapshot at offset" in str(caught.value)
    reset = f"`stream-fs checkpoint reset --topic {crashed.only.topic} --partition 0 --to-offset N`"
    assert reset in str(caught.value)


def test_a_snapshot_of_another_release_is_not_skipped(crashed: Stream, member: MakeMember) -> None:
    state = read_state(crashed)
    replace_snapshots(crashed, state, of_another_release(state.snapshots[0]))
    second = member(crashed)
    with pytest.raises(UnknownSnapshotVersion, match="version 99"):
        second.runs()


def test_parts_are_as_large_as_messages_may_be(make_stream: MakeStream, member: MakeMember) -> None:
    stream = make_stream({**WIDE, **SMALL}, producing={"batch.size": 50_000})
    configuration = stream.configuration()
    assert topic_problems(configuration, KafkaTopics(configuration.kafka_settings())) == []
    records = wide(FIRST + CHUNK)
    stream.feed(records[:FIRST])
    first = member(stream)
    first.completes(1)
    first.kill()
    (_, *parts), *_ = read_state(stream).snapshots
    sizes = [len(value or b"") for _, value in parts]
    assert sum(sizes) > 1_000_000
    assert max(sizes) == 60_000
    stream.feed(records[FIRST:])
    second = member(stream)
    second.completes(2)
    assert [event.chunk for event in second.of(events.Restored)] == [1]
    assert_undisturbed(stream, 2)


def test_a_snapshot_with_parts_of_another_size_is_restored(
    make_stream: MakeStream, member: MakeMember
) -> None:
    stream = make_stream(WIDE)
    records = wide(FIRST + 2 * CHUNK)
    largest: list[int] = []
    for chunk, changes in enumerate(({}, SMALL, {}), 1):
        stream.feed(records[len(stream.fed[stream.only]) : FIRST + (chunk - 1) * CHUNK])
        one = member(stream, changes)
        one.completes(chunk)
        assert [event.chunk for event in one.of(events.Restored)] == [chunk - 1]
        one.kill()
        (_, *parts), *_ = read_state(stream).snapshots
        largest.append(max(len(value or b"") for _, value in parts))
    assert largest == [900_000, 60_000, 900_000]
    assert_undisturbed(stream, 3)
