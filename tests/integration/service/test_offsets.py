"""The state alone decides where to continue, and the input from there on must still exist."""

from __future__ import annotations

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

from stream_fs.errors import OffsetGone
from stream_fs.pipeline import events
from tests.integration.kafka.backend import KafkaBackend
from tests.integration.service.conftest import MakeMember, MakeStream
from tests.integration.service.stream import ALONE, CHUNK, FIRST, Stream, chunks
from tests.integration.service.undisturbed import assert_undisturbed
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS


@pytest.mark.parametrize("moved_to", [7, 1_000_000])
def test_changed_group_offsets_are_corrected(
    moved_to: int, stream: Stream, member: MakeMember
) -> None:
    stream.feed(chunks(2))
    first = member(stream)
    first.completes(2)
    first.stop()
    place = TopicPartition(*stream.only, moved_to)
    moved = ConsumerGroupTopicPartitions(stream.name, [place])
    for done in stream.topics.admin.alter_consumer_group_offsets([moved]).values():
        done.result(TIMEOUT_SECONDS)

    stream.feed(chunks(3)[-CHUNK:][: CHUNK - 1])  # not a whole chunk
    second = member(stream)
    second.runs()
    committed = FIRST + CHUNK
    assert second.of(events.GroupOffsetDiffers) == [
        events.GroupOffsetDiffers(stream.only, group=moved_to, state=committed)
    ]
    wait_until(lambda: group_offset(stream) == committed, "the group learns of the state's offset")
    second.kill()

    stream.feed(chunks(3)[-1:])
    third = member(stream)
    third.completes(3)
    assert not third.of(events.GroupOffsetDiffers)
    assert_undisturbed(stream, 3)


@pytest.mark.parametrize("snapshot_first", [False, True])
def test_input_deleted_by_retention_is_an_error(
    snapshot_first: bool, make_stream: MakeStream, member: MakeMember
) -> None:
    """Also what only the replay needs: without a snapshot at the end, from the first chunk on."""
    stream = make_stream(ALONE)
    stream.feed(chunks(3))
    first = member(stream)
    first.completes(2)
    if snapshot_first:
        first.stop()
    else:
        first.kill()
    needed = FIRST + CHUNK if snapshot_first else FIRST
    KafkaBackend(stream.topics).delete_below(stream.only, needed + 1)

    second = member(stream)
    with pytest.raises(OffsetGone) as caught:
        second.runs()
    message = str(caught.value)
    assert f"{stream.only} continues at offset {needed}" in message
    assert f"[{needed + 1}, {FIRST + 2 * CHUNK})" in message
    reset = f"`stream-fs checkpoint reset --topic {stream.only.topic} --partition 0"
    assert f"{reset}`" in message
    assert f"{reset} --keep-model --to-offset {needed + 1}`" in message


def test_input_before_the_offset_may_be_deleted(stream: Stream, member: MakeMember) -> None:
    stream.feed(chunks(2))
    first = member(stream)
    first.completes(2)
    first.stop()
    KafkaBackend(stream.topics).delete_below(stream.only, FIRST + CHUNK)
    stream.feed(chunks(3)[-CHUNK:])
    second = member(stream)
    second.completes(3)
    assert_undisturbed(stream, 3)


def group_offset(stream: Stream) -> int:
    wanted = ConsumerGroupTopicPartitions(stream.name, [TopicPartition(*stream.only)])
    (answer,) = stream.topics.admin.list_consumer_group_offsets([wanted]).values()
    (found,) = answer.result(TIMEOUT_SECONDS).topic_partitions
    return int(found.offset)
