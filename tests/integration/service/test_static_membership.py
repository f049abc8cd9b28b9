"""Static members (`group.instance.id`): restarts, and two members with one id."""

from __future__ import annotations

import json
from typing import Any

import pytest

from stream_fs.service.exit_codes import ExitCode
from tests.integration.service.conftest import MakeService, MakeStream
from tests.integration.service.services import Service
from tests.integration.service.stream import Stream
from tests.support.processes import wait_until

# Longer than any restart takes: nothing may move before it is over.
CLASSIC = {"heartbeat.interval.ms": 300, "session.timeout.ms": 60_000}
PROTOCOLS: dict[str, dict[str, Any]] = {
    "eager": CLASSIC,
    "cooperative": CLASSIC,
    "consumer": {},  # the broker decides
}
RUNNING, RELEASED = "task is running", "partition released"


def named(protocol: str, name: str) -> dict[str, Any]:
    """Changes of the configuration for one member."""
    properties = {**PROTOCOLS[protocol], "group.instance.id": name}
    return {"kafka.protocol": protocol, "kafka.properties": properties}


def held(said: str) -> set[str]:
    """The partitions that a process has and has restored, by its log."""
    found: set[str] = set()
    for line in said.splitlines():
        place = line.partition(" partition=")[2].partition(" ")[0]
        if RUNNING in line:
            found.add(place)
        elif RELEASED in line:
            found.discard(place)
    return found


def two_members(
    protocol: str, make_stream: MakeStream, service: MakeService
) -> tuple[Stream, Service, Service]:
    """A stream of two partitions, and two members that have one each."""
    stream = make_stream(partitions=2)
    stream.feed_all(1)
    one, two = (service(stream, named(protocol, name)) for name in ("one", "two"))
    wait_until(
        lambda: (
            sorted([*held(one.output), *held(two.output)]) == ["0", "1"]
            and len(held(one.output)) == 1
            and one.ready()
            and two.ready()
        ),
        "the two share the partitions",
    )
    for each in (one, two):
        status = json.loads(each.get("/api/status")[1])
        assert (len(status["partitions"]), status["stream_partitions"]) == (1, 2)
    return stream, one, two


def assert_kept(service: Service, mine: set[str], other: Service, before: str) -> None:
    """Check that the restarted member has its partition, and the other saw no rebalance."""
    service.wait_for(lambda: RUNNING in service.output, "it has no partition")
    assert held(service.output) == mine
    since = other.output.removeprefix(before)
    assert RELEASED not in since
    assert "task is " not in since


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_graceful_restart_moves_no_partition(
    protocol: str, make_stream: MakeStream, service: MakeService
) -> None:
    stream, one, two = two_members(protocol, make_stream, service)
    mine, before = held(one.output), two.output
    one.terminate()
    again = service(stream, named(protocol, "one"))
    assert_kept(again, mine, two, before)


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_a_restart_after_a_kill_moves_no_partition(
    protocol: str, make_stream: MakeStream, service: MakeService
) -> None:
    stream, one, two = two_members(protocol, make_stream, service)
    mine, before = held(one.output), two.output
    one.kill()
    again = service(stream, named(protocol, "one"))
    assert_kept(again, mine, two, before)


@pytest.mark.parametrize("protocol", ["eager", "cooperative"])
def test_a_duplicate_member_replaces_the_first_which_ends_with_the_reason(
    protocol: str, make_stream: MakeStream, service: MakeService
) -> None:
    stream = make_stream()
    first = service(stream, named(protocol, "same"))
    first.wait_for_output(RUNNING)
    duplicate = service(stream, named(protocol, "same"))
    assert first.wait() == ExitCode.BROKER
    assert "another process has joined the group with the same group.instance.id" in first.output
    duplicate.wait_for_output(RUNNING)
    assert held(duplicate.output) == {"0"}


def test_the_consumer_protocol_refuses_the_instance_id_of_a_live_member(
    make_stream: MakeStream, service: MakeService
) -> None:
    """A live member, or one that was killed within its session timeout."""
    stream = make_stream()
    first = service(stream, named("consumer", "same"))
    first.wait_for_output(RUNNING)
    duplicate = service(stream, named("consumer", "same"))
    assert duplicate.wait() == ExitCode.BROKER
    assert "a process with the same group.instance.id is in the group" in duplicate.output
    assert held(first.output) == {"0"}
