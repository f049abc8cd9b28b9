"""A partition has one owner: a fenced member publishes nothing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic

from stream_fs.errors import NoOwnership
from stream_fs.kafka import ClientSettings, KafkaTransport
from stream_fs.kafka.consumer import KafkaConsumer
from stream_fs.kafka.offsets import OffsetReader
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Assignment
from tests.integration.service.conftest import MakeMember, MakeStream
from tests.integration.service.members import Member, together
from tests.integration.service.stream import ALONE, CHUNK, Stream, chunks
from tests.integration.service.undisturbed import assert_undisturbed
from tests.support.topics import TIMEOUT_SECONDS

SHORT_SESSION = {
    "kafka.properties": {
        "heartbeat.interval.ms": 300,
        "session.timeout.ms": 8000,
        "max.poll.interval.ms": 8000,
    }
}
"""A session short enough for a test, and long enough for a busy machine."""


def test_a_fenced_member_publishes_nothing(make_stream: MakeStream, member: MakeMember) -> None:
    stream = make_stream({**SHORT_SESSION, **ALONE})
    stream.feed(chunks(6))
    stopped_member = member(stream)
    successors: list[Member] = []

    def sleep() -> None:
        """Stay without polls until another member has acquired the partition and continued."""
        successors.append(member(stream))
        successors[0].completes(4)

    stopped_member.at("records sent", 3, sleep)
    stopped_member.until(lambda: bool(stopped_member.of(events.Fenced)), "being fenced")
    (successor,) = successors
    assert committed(stopped_member) == [1, 2]
    (restored,) = successor.of(events.Restored)
    assert restored.chunk + restored.behind == 2

    together([stopped_member, successor], lambda: stream.reached[stream.only] == 6, "the end")
    both = [stopped_member, successor]
    together(both, lambda: sum(len(one.held) for one in both) == 1, "one owner")
    assert_undisturbed(stream, 6)


class DuplicateTransport(KafkaTransport):
    """Publishes with the ids of a group, and reads as a member of another one."""

    def __init__(
        self, settings: ClientSettings, stream: str, state_topic_of: Callable[[str], str]
    ) -> None:
        super().__init__(settings, stream, state_topic_of)
        self._reading = replace(settings, group=f"{settings.group}-twin")

    def input(self, topics: Sequence[str], assignment: Assignment) -> KafkaConsumer:
        return KafkaConsumer(
            self._reading, topics, assignment, OffsetReader.connect(self._reading), 1
        )


def test_one_of_two_members_that_fence_each_other_remains(
    stream: Stream, member: MakeMember
) -> None:
    one, duplicate = member(stream), member(stream, transport=DuplicateTransport)
    stream.feed(chunks(1))
    together([one, duplicate], lambda: stream.reached[stream.only] == 1, "the first chunk")
    alive = [one, duplicate]
    refusals: list[str] = []
    number = 1
    while len(alive) == 2:
        number += 1
        assert number < 20, [each.of(events.Fenced) for each in alive]
        stream.feed(chunks(number)[-CHUNK:])
        deadline = monotonic() + TIMEOUT_SECONDS
        while stream.reached[stream.only] < number or any(not one.held for one in alive):
            assert monotonic() < deadline, [each.events[-3:] for each in alive]
            for each in tuple(alive):
                try:
                    each.worker.run_once()
                except NoOwnership as error:
                    refusals.append(str(error))
                    alive.remove(each)
    (left,) = alive
    (gone,) = {one, duplicate} - {left}
    assert [fence.final for fence in gone.of(events.Fenced)] == [False] * 4 + [True]
    assert not any(fence.final for fence in left.of(events.Fenced))
    (refusal,) = refusals
    assert str(stream.only) in refusal
    assert "another process publishes with the same group name" in refusal
    stream.feed(chunks(number + 1)[-CHUNK:])
    left.completes(number + 1)
    assert_undisturbed(stream, number + 1)


def committed(member: Member) -> list[int]:
    return [event.ranking.chunk for event in member.of(events.ChunkCommitted)]
