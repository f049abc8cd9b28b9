"""Streams side by side on one input topic, and refused combinations, on a real broker."""

from __future__ import annotations

from collections import defaultdict
from copy import copy
from typing import Any

import pytest

from stream_fs.cli.main import main
from stream_fs.pipeline import events
from stream_fs.service.exit_codes import ExitCode
from tests.integration.service.conftest import MakeMember, MakeService
from tests.integration.service.members import together
from tests.integration.service.stream import CHUNK, FIRST, Stream, chunks
from tests.integration.service.undisturbed import assert_undisturbed
from tests.support.processes import wait_until

Capture = pytest.CaptureFixture[str]


def beside(stream: Stream, **changes: Any) -> Stream:
    """Another stream on the same input."""
    other = copy(stream)
    other.name = stream.topics.unique("beside")
    other.changes = {**stream.changes, "stream.name": other.name, **changes}
    other.reached = defaultdict(int)
    return other


def sharing(stream: Stream, what: str) -> Stream:
    """Another stream on the same input, with the name or the group of the first."""
    other = beside(stream, **{"kafka.group": "another" if what == "name" else stream.name})
    if what == "name":
        other.changes["stream.name"] = stream.name
    other.create(1)
    return other


def run(stream: Stream, *command: str) -> int:
    return main([*command, "--config", str(stream.file())])


def test_a_stream_with_another_configuration_runs_beside_the_first(
    stream: Stream, member: MakeMember, capsys: Capture
) -> None:
    """As the runbook advises where the configuration has changed."""
    stream.feed(chunks(2))
    first = member(stream)
    first.completes(2)
    first.kill()

    teal = beside(stream, **{"selector.clusters": 3})
    assert run(teal, "topics", "check") == ExitCode.PROBLEM  # it has no topic of rankings yet
    teal.create(1)
    assert run(teal, "topics", "check") == ExitCode.OK
    second = member(teal)
    second.runs()
    assert [event.chunk for event in second.of(events.Restored)] == [0]

    again = member(stream)
    stream.feed(chunks(5)[-3 * CHUNK :])  # 100 records: K = 3 takes 60 for its first chunk
    both = [again, second]
    together(both, lambda: teal.reached[teal.only] == 3, "three chunks of the second")
    together(both, lambda: stream.reached[stream.only] == 5, "five chunks of the first")
    assert [one.of(events.Fenced) for one in both] == [[], []]

    third = beside(stream)
    capsys.readouterr()
    for command, code in (
        (["reset", "--yes"], ExitCode.PROBLEM),
        (["export", "model"], ExitCode.CONFIGURATION),
    ):
        assert run(third, "checkpoint", *command) == code
        said = "".join(capsys.readouterr())
        assert f"stream {stream.name!r} in group {stream.name!r}" in said
        assert f"stream {teal.name!r} in group {teal.name!r}" in said

    again.stop()
    second.stop()
    assert_undisturbed(stream, 5)
    assert_undisturbed(teal, 3)


@pytest.mark.parametrize("shared", ["name", "group"])
def test_a_stream_with_the_name_or_group_of_another_is_refused(
    stream: Stream, member: MakeMember, service: MakeService, capsys: Capture, shared: str
) -> None:
    stream.feed(chunks(1))
    first = member(stream)
    first.completes(1)
    first.kill()
    other = sharing(stream, shared)

    refusal = f"{stream.only} has no chunk of stream"
    one = service(other)
    assert one.wait() == ExitCode.REFUSED, one.output
    assert refusal in one.output
    capsys.readouterr()
    assert run(other, "topics", "check") == ExitCode.PROBLEM
    assert f"which has the same {shared}" in capsys.readouterr().out
    assert run(other, "checkpoint", "reset", "--yes") == ExitCode.REFUSED
    assert refusal in capsys.readouterr().err

    stream.feed(chunks(2)[FIRST:])
    again = member(stream)
    again.completes(2)
    assert_undisturbed(stream, 2)


def test_at_most_one_of_two_simultaneous_starts_publishes(
    stream: Stream, member: MakeMember, service: MakeService
) -> None:
    """Both have the records of their first chunk before either has a state."""
    stream.feed(chunks(1))
    both = {service(one): one for one in (stream, sharing(stream, "name"))}
    wait_until(lambda: ExitCode.REFUSED in [one.code for one in both], "one is refused")
    for one in both:
        one.kill()
    (said, *_) = [one.output for one in both if one.code == ExitCode.REFUSED]
    assert "which has the same name" in said

    published = [of for one, of in both.items() if "chunk committed" in one.output]
    (owner,) = published or [stream]
    again = member(owner)
    again.completes(1)
    again.stop()
    assert_undisturbed(owner, 1)
