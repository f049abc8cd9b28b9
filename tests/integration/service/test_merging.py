"""The ranking of the whole stream continues without a gap when members crash, join or leave."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest

from stream_fs.pipeline import events
from tests.integration.service.conftest import MakeMember, MakeService, MakeStream
from tests.integration.service.members import Member
from tests.integration.service.services import Service
from tests.integration.service.stream import Stream
from tests.integration.service.undisturbed import assert_undisturbed
from tests.support.recovery.subscriber import problems
from tests.support.topics import TIMEOUT_SECONDS

QUICK = {"merge.every_seconds": 0.2, "checkpoint.every_chunks": 1}


def sources(ranking: dict[str, Any]) -> dict[tuple[str, int], int]:
    return {(s["topic"], s["partition"]): s["sequence"] for s in ranking["sources"]}


def merged_up_to(stream: Stream, chunk: int) -> bool:
    """Whether the last merged ranking has this chunk of every partition."""
    merged = stream.merged()
    return bool(merged) and sources(merged[-1]) == dict.fromkeys(
        map(tuple, stream.partitions), chunk
    )


def has_merged(member: Member, chunk: int) -> bool:
    """The same, by the events of the member, without waiting for open transactions."""
    merged = member.of(events.MergedCommitted)
    return bool(merged) and {part.chunk for part in merged[-1].parts} == {chunk}


def assert_series(stream: Stream) -> None:
    """Every message is valid, no series has gaps or duplicates, and no source goes back."""
    topic = stream.configuration().output.topic
    assert problems(one.value for one in stream.committed(topic).values()) == []
    known: dict[tuple[str, int], int] = {}
    for ranking in stream.merged():
        now = sources(ranking)
        assert now != known, "nothing new"
        assert all(now.get(place, 0) >= chunk for place, chunk in known.items())
        known = now


@pytest.mark.parametrize("inputs", [1, 2])
def test_all_partitions_of_all_topics_are_merged(
    inputs: int, make_stream: MakeStream, member: MakeMember
) -> None:
    stream = make_stream(QUICK, inputs=inputs, partitions=2)
    stream.feed_all(2)
    one = member(stream)
    one.until(lambda: bool(one.of(events.MergedCommitted)), "the first merged ranking")
    stream.feed_all(2, seed=1)
    one.until(lambda: merged_up_to(stream, 4), "all of it")
    assert one.merge_series > {"stream_fs_merged_rankings_total"}
    one.stop()
    assert not one.merge_series
    assert_series(stream)
    assert_undisturbed(stream, 4)


@pytest.mark.parametrize("step", ["merge begun", "merge sent", "merge committed"])
def test_another_member_continues_after_a_crash_at_any_step_of_a_merge(
    step: str, make_stream: MakeStream, member: MakeMember
) -> None:
    stream = make_stream(QUICK, partitions=2)
    stream.feed_all(1)
    first = member(stream)
    first.until(lambda: merged_up_to(stream, 1), "the first merged ranking")
    first.at(step, 1, crash)
    stream.feed_all(2, seed=1)
    with pytest.raises(Crash):
        first.until(lambda: False, "its crash")
    first.kill()
    stream.feed_all(1, seed=2)
    successor = member(stream)
    successor.until(lambda: has_merged(successor, 4), "the end")
    (taken,) = successor.of(events.MergeAcquired)
    assert taken.sequence == len(stream.merged()) - len(successor.of(events.MergedCommitted))
    assert_series(stream)
    assert_undisturbed(stream, 4)


class Crash(BaseException):
    """Nothing catches this on the way out."""


def crash() -> None:
    raise Crash


def test_another_process_continues_after_the_owner_is_killed(
    make_stream: MakeStream, service: MakeService
) -> None:
    stream = make_stream(QUICK, partitions=4)
    load = Load(stream)
    members = [service(stream), service(stream)]
    load.until(lambda: all(holds(one) == 2 for one in members), "two share the partitions")
    load.until(lambda: len(stream.merged()) >= 3, "merged rankings")
    load.until(lambda: sum(map(merges, members)) == 1, "one merges")
    (owner,) = [one for one in members if merges(one)]
    (successor,) = [one for one in members if one is not owner]
    owner.kill()
    load.until(lambda: merges(successor), "the other one merges")
    count = len(stream.merged())
    load.until(lambda: len(stream.merged()) >= count + 3, "it goes on")
    load.end()
    assert_series(stream)
    assert_undisturbed(stream, load.chunks)


def test_the_group_grows_and_shrinks_under_load(
    make_stream: MakeStream, service: MakeService
) -> None:
    stream = make_stream(QUICK, partitions=4)
    load = Load(stream)
    members = [service(stream)]
    load.until(lambda: len(stream.merged()) >= 2, "merged rankings of one process")

    members += [service(stream) for _ in range(3)]
    load.until(lambda: all(holds(one) == 1 for one in members), "four share the partitions")
    count = len(stream.merged())
    load.until(lambda: len(stream.merged()) >= count + 3, "merged rankings of four")
    load.until(lambda: sum(map(merges, members)) == 1, "one merges")

    (owner,) = [one for one in members if merges(one)]
    others = [one for one in members if one is not owner]
    owner.terminate()
    others.pop().terminate()
    load.until(lambda: all(holds(one) == 2 for one in others), "two share the partitions")
    count = len(stream.merged())
    load.until(lambda: len(stream.merged()) >= count + 3, "merged rankings of two")
    load.end()
    assert sum(map(merges, others)) == 1
    assert_series(stream)
    assert_undisturbed(stream, load.chunks)


def test_added_partitions_are_merged(make_stream: MakeStream, member: MakeMember) -> None:
    stream = make_stream({**QUICK, "kafka.properties": FRESH}, partitions=1)
    stream.feed_all(1)
    one = member(stream)
    one.until(lambda: stream.reached[stream.partitions[0]] == 1, "the first chunk")
    assert stream.merged() == []
    stream.grow(3)
    one.until(lambda: one.held == set(stream.partitions), "the new partitions")
    stream.feed_all(1, seed=1)
    one.until(lambda: sum(stream.reached.values()) == 4, "their chunks")
    one.until(lambda: bool(stream.merged()) and len(sources(stream.merged()[-1])) == 3, "all three")
    assert_series(stream)


def test_a_fenced_member_merges_nothing(make_stream: MakeStream, member: MakeMember) -> None:
    stream = make_stream(QUICK, partitions=2)
    stream.feed_all(1)
    stopped_member = member(stream)
    stopped_member.until(lambda: merged_up_to(stream, 1), "the first merged ranking")
    successors: list[Member] = []

    def sleep() -> None:
        """Stay without polls until another member has acquired the merge and continued."""
        source = stopped_member.worker._input
        source._consumer.unsubscribe()  # type: ignore[attr-defined]  # Kafka's has one
        successors.append(member(stream))
        successors[0].until(lambda: has_merged(successors[0], 3), "the successor's")

    stopped_member.at("merge sent", 1, sleep)
    stream.feed_all(2, seed=1)
    stopped_member.until(lambda: bool(stopped_member.of(events.MergeFailed)), "being fenced")
    assert [event.outcome for event in stopped_member.of(events.MergeFailed)] == ["fenced"]
    stopped_member.kill()
    assert merged_up_to(stream, 3)
    assert_series(stream)
    assert_undisturbed(stream, 3)


FRESH = {
    "heartbeat.interval.ms": 300,
    "session.timeout.ms": 6000,
    "topic.metadata.refresh.interval.ms": 500,
}


class Load:
    """Feeds chunks to all partitions while a condition is awaited."""

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.chunks = 0

    def until(self, condition: Callable[[], bool], what: str) -> None:
        deadline = time.monotonic() + 2 * TIMEOUT_SECONDS
        while True:
            self._stream.feed_all(1, seed=self.chunks)
            self.chunks += 1
            time.sleep(0.2)
            if condition():
                return
            assert time.monotonic() < deadline, f"{what}; merged: {len(self._stream.merged())}"

    def end(self) -> None:
        """Wait until all that was fed is published and merged."""
        deadline = time.monotonic() + 2 * TIMEOUT_SECONDS
        while not merged_up_to(self._stream, self.chunks):
            assert time.monotonic() < deadline, self._stream.merged()[-1]["sources"]
            time.sleep(0.2)


def holds(service: Service) -> int:
    """The number of partitions that a process owns and has restored, by its log."""
    held = set()
    for line in service.output.splitlines():
        place = line.partition("partition=")[2].partition(" ")[0]
        if "task is running" in line:
            held.add(place)
        elif "partition released" in line:
            held.discard(place)
    return len(held)


def merges(service: Service) -> bool:
    """Whether a process owns the merge, by its log."""
    said = service.output  # it may give up what it has not taken over yet
    return said.rfind("merge acquired") > said.rfind("merge released")
