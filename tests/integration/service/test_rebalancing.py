"""Partitions that move between members: nothing is lost or counted twice."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from stream_fs.pipeline import events
from tests.integration.service.conftest import MakeMember, MakeService, MakeStream
from tests.integration.service.members import Member, together
from tests.integration.service.stream import Stream
from tests.integration.service.undisturbed import assert_undisturbed

CLASSIC = {"heartbeat.interval.ms": 300, "session.timeout.ms": 3000}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "eager": {"kafka.properties": CLASSIC},
    "cooperative": {"kafka.properties": CLASSIC},
    "consumer": {"kafka.properties": {}},  # the broker decides
}


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_partitions_move_without_loss(
    protocol: str, make_stream: MakeStream, member: MakeMember, service: MakeService
) -> None:
    stream = make_stream({"kafka.protocol": protocol, **PROTOCOLS[protocol]}, partitions=3)
    stream.feed_all(2)
    one = member(stream)
    one.until(lambda: reached(stream, 2), "the first two chunks")

    # A second member joins during the work.
    two = member(stream)
    stream.feed_all(2, seed=1)
    together([one, two], lambda: shared(stream, [one, two]), "two share the partitions")
    together([one, two], lambda: reached(stream, 4), "four chunks")
    for each in (one, two):
        assert each.measured == each.held

    # A third one comes, as a process of its own, and is killed.
    third = service(stream)
    together(
        [one, two],
        lambda: "model restored" in third.output and all(settled(each, 1) for each in (one, two)),
        "three share the partitions",
    )
    (taken,) = set(stream.partitions) - one.held - two.held
    for each in (one, two):
        assert each.measured == each.held
    stream.feed_all(2, seed=2)
    together([one, two], lambda: third.output.count("chunk committed") == 2, "the third works")
    stream.feed_all(1, seed=3)
    third.kill()
    together([one, two], lambda: taken in one.held | two.held, "another member owns it")
    together([one, two], lambda: reached(stream, 7), "seven chunks")

    # The second one shuts down gracefully.
    stream.feed_all(1, seed=4)
    left = two.held
    two.stop()
    assert not two.measured
    one.until(lambda: reached(stream, 8), "eight chunks")
    assert one.held == one.measured == set(stream.partitions)
    for place in left:
        last = [event for event in one.of(events.Restored) if event.partition == place][-1]
        assert last.behind == 0, "the one that left in order has left a snapshot"
    assert not [event for each in (one, two) for event in each.of(events.ReplayDiverged)]
    assert_undisturbed(stream, 8)


def reached(stream: Stream, chunk: int) -> bool:
    return all(stream.reached[partition] >= chunk for partition in stream.partitions)


def shared(stream: Stream, members: Sequence[Member]) -> bool:
    """Every member owns partitions, and every partition has one owner."""
    held = [place for each in members for place in each.held]
    return sorted(held) == stream.partitions and all(settled(each) for each in members)


def settled(member: Member, count: int | None = None) -> bool:
    """It has something, or so many partitions, and all of them are restored."""
    enough = bool(member.held) if count is None else len(member.held) == count
    return enough and member.worker.ready
