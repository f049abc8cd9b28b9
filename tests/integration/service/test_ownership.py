"""A partition has one owner: whoever wakes up late publishes nothing more."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import monotonic

from stream_fs.errors import NoOwnership
from stream_fs.kafka import ClientSettings, KafkaTransport
from stream_fs.kafka.consumer import KafkaConsumer
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Assignment
from tests.integration.service.conftest import MakeMember, MakeStream
from tests.integration.service.members import Member, together
from tests.integration.service.stream import ALONE, CHUNK, Stream, chunks
from tests.integration.service.undisturbed import assert_undisturbed
from tests.support.topics import TIMEOUT_SECONDS

IMPATIENT = {
    "kafka.properties": {
        "heartbeat.interval.ms": 300,
        "session.timeout.ms": 8000,
        "max.poll.interval.ms": 8000,
    }
}
"""So that it is noticed who sleeps; but not who is merely slow on a busy machine."""


def test_a_zombie_publishes_nothing(make_stream: MakeStream, member: MakeMember) -> None:
    stream = make_stream({**IMPATIENT, **ALONE})
    stream.feed(chunks(6))
    zombie = member(stream)
    heirs: list[Member] = []

    def sleep() -> None:
        """Meanwhile the group gives the partition to another one, which goes on."""
        heirs.append(member(stream))
        heirs[0].completes(4)

    zombie.at("records sent", 3, sleep)
    zombie.until(lambda: bool(zombie.of(events.Fenced)), "being fenced")
    (heir,) = heirs
    assert committed(zombie) == [1, 2]
    (restored,) = heir.of(events.Restored)
    assert restored.chunk + restored.behind == 2

    together([zombie, heir], lambda: stream.reached[stream.only] == 6, "the end")
    both = [zombie, heir]
    together(both, lambda: sum(len(one.held) for one in both) == 1, "one owner")
    assert_undisturbed(stream, 6)


class Twin(KafkaTransport):
    """Publishes with the ids of a group, and reads as a member of another one."""

    def __init__(
        self, settings: ClientSettings, stream: str, state_topic_of: Callable[[str], str]
    ) -> None:
        super().__init__(settings, stream, state_topic_of)
        self._reading = replace(settings, group=f"{settings.group}-twin")

    def input(self, topics: Sequence[str], assignment: Assignment) -> KafkaConsumer:
        return KafkaConsumer(self._reading, topics, assignment)


def test_of_two_that_fence_each_other_one_remains(stream: Stream, member: MakeMember) -> None:
    one, twin = member(stream), member(stream, transport=Twin)
    stream.feed(chunks(1))
    together([one, twin], lambda: stream.reached[stream.only] == 1, "the first chunk")
    alive = [one, twin]
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
    (gone,) = {one, twin} - {left}
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
