"""`stream-fs watch` against rankings that the pipeline has published."""

from __future__ import annotations

import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions

from stream_fs.pipeline.ports import Partition
from stream_fs.wire import decode_ranking, encode_ranking, ranking_payload
from tests.integration.kafka.backend import KafkaBackend
from tests.integration.service.conftest import MakeMember, MakeStream
from tests.integration.service.services import NOWHERE, ROOT
from tests.integration.service.stream import Changes, Stream, chunks
from tests.support.processes import wait_until
from tests.support.topics import TIMEOUT_SECONDS

Watch = Callable[..., "Watching"]


class Watching:
    """`stream-fs watch` as a process."""

    def __init__(self, configuration: Path, *words: str, stdout: int | None = None) -> None:
        self._out = configuration.with_suffix(".out")
        self._err = configuration.with_suffix(".err")
        command = [sys.executable, "-m", "stream_fs.cli", "watch", "--config", str(configuration)]
        with self._out.open("wb") as out, self._err.open("wb") as err:
            self.process = subprocess.Popen(
                [*command, *words],
                cwd=ROOT,
                stdout=out if stdout is None else stdout,
                stderr=err,
                # A test run in the background ignores interrupts, and would hand that on.
                preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
            )

    @property
    def lines(self) -> list[bytes]:
        return self._out.read_bytes().splitlines()

    @property
    def errors(self) -> list[str]:
        return self._err.read_text(encoding="utf-8").splitlines()

    def wait_for_lines(self, count: int) -> None:
        wait_until(
            lambda: len(self.lines) >= count, f"{count} lines, not {self.lines} {self.errors}"
        )

    def wait(self) -> int:
        return self.process.wait(TIMEOUT_SECONDS)


@pytest.fixture
def watch() -> Iterator[Watch]:
    made: list[Watching] = []

    def start(
        stream: Stream, *words: str, changes: Changes | None = None, **options: int
    ) -> Watching:
        made.append(Watching(stream.file(changes), *words, **options))
        return made[-1]

    yield start
    for one in made:
        one.process.kill()
        one.process.wait()


def values(stream: Stream, partition: int = 0) -> list[bytes]:
    place = Partition(stream.inputs[0], partition)
    return [published.value or b"" for published in stream.rankings()[place]]


def test_it_shows_the_newest_of_every_partition_and_what_follows(
    make_stream: MakeStream, member: MakeMember, watch: Watch
) -> None:
    stream = make_stream({"merge.enabled": False}, partitions=2)
    stream.feed_all(2)
    one = member(stream)
    one.until(lambda: all(stream.reached[p] == 2 for p in stream.partitions), "two chunks each")
    watching = watch(stream, "--json", "--count", "4")
    watching.wait_for_lines(2)
    assert sorted(watching.lines) == sorted(values(stream, n)[-1] for n in (0, 1))
    stream.feed_all(1, seed=1)
    one.until(lambda: all(stream.reached[p] == 3 for p in stream.partitions), "three chunks each")
    assert watching.wait() == 0
    assert sorted(watching.lines[2:]) == sorted(values(stream, n)[-1] for n in (0, 1))
    assert watching.errors == []


def test_the_ranking_of_the_whole_stream_comes_first(
    make_stream: MakeStream, member: MakeMember, watch: Watch
) -> None:
    stream = make_stream({"merge.every_seconds": 0.5}, partitions=2)
    stream.feed_all(1)
    one = member(stream)
    one.until(
        lambda: any(len(ranking["sources"]) == 2 for ranking in stream.merged()), "a merged ranking"
    )
    watching = watch(stream, "--count", "1")
    assert watching.wait() == 0
    assert all(line.startswith(b"merged sequence ") for line in watching.lines)
    everything = watch(stream, "--partitions", "--count", "3")
    assert everything.wait() == 0
    assert {line.split()[0].rpartition(b"/")[2] for line in everything.lines} == {
        b"merged",
        b"0",
        b"1",
    }


def test_other_streams_on_the_same_topic_are_not_shown(
    stream: Stream, member: MakeMember, watch: Watch
) -> None:
    stream.feed(chunks(1))
    member(stream).completes(1)
    (first,) = values(stream)
    ranking = decode_ranking(first)
    backend, rankings = KafkaBackend(stream.topics), stream.configuration().output.topic
    # A name that begins like ours, and a sequence that would be a gap in ours.
    foreign = ranking_payload(replace(ranking, stream=f"{stream.name}-2", sequence=7))
    backend.produce(Partition(rankings, 0), foreign.value, foreign.key, foreign.headers)
    for words in (["--from-beginning"], []):
        watching = watch(stream, "--json", "--timeout", "3", *words)
        assert watching.wait() == 5
        assert watching.lines == [first]
        assert watching.errors == []


def test_it_shows_everything_from_the_beginning_and_leaves_no_trace(
    stream: Stream, member: MakeMember, watch: Watch
) -> None:
    stream.feed(chunks(3))
    member(stream).completes(3)
    watching = watch(stream, "--json", "--from-beginning", "--timeout", "15")
    assert watching.wait() == 5
    assert watching.lines == values(stream)
    assert watching.errors == []
    asked = ConsumerGroupTopicPartitions(stream.name)
    (answer,) = stream.topics.admin.list_consumer_group_offsets([asked]).values()
    offsets = answer.result(TIMEOUT_SECONDS).topic_partitions
    assert {offset.topic for offset in offsets} == {stream.only.topic}


def test_message_pack_is_shown_as_json(
    make_stream: MakeStream, member: MakeMember, watch: Watch
) -> None:
    stream = make_stream({"output.format": "msgpack"})
    stream.feed(chunks(1))
    member(stream).completes(1)
    watching = watch(stream, "--json", "--count", "1")
    assert watching.wait() == 0
    (published,) = stream.committed(stream.configuration().output.topic).values()
    ranking = decode_ranking(published.value or b"", "msgpack")
    assert watching.lines == [encode_ranking(ranking, "json")]


def test_a_pipe_gets_a_plain_line_for_each_view(
    stream: Stream, member: MakeMember, watch: Watch
) -> None:
    stream.feed(chunks(2))
    member(stream).completes(2)
    watching = watch(stream, "--count", "1", "--top", "3")
    assert watching.wait() == 0
    ranking = decode_ranking(values(stream)[-1])
    assert len(watching.lines) == len(ranking.views)
    for line, view in zip(watching.lines, ranking.views, strict=True):
        assert line.decode().startswith(f"{stream.only} sequence 2 records 15/55 as of ")
        best = [f"{feature.index}:{feature.relevance:.3g}" for feature in view.features[:3]]
        assert line.decode().endswith(f" top {' '.join(best)}")


def test_a_terminal_gets_a_table(stream: Stream, member: MakeMember, watch: Watch) -> None:
    stream.feed(chunks(2))
    member(stream).completes(2)
    ours, theirs = pty.openpty()
    watching = watch(stream, "--count", "1", stdout=theirs)
    os.close(theirs)
    shown = b""
    while True:
        try:
            more = os.read(ours, 4096)
        except OSError:  # so a terminal ends (Linux)
            break
        shown += more
    os.close(ours)
    assert watching.wait() == 0, watching.errors
    assert "│".encode() in shown
    assert b"\x1b[" in shown
    assert f"{stream.name}.rankings".encode() in shown


def test_gaps_and_invalid_rankings_are_reported(
    stream: Stream, member: MakeMember, watch: Watch
) -> None:
    stream.feed(chunks(1))
    member(stream).completes(1)
    backend, rankings = KafkaBackend(stream.topics), stream.configuration().output.topic
    (first,) = values(stream)
    ranking = decode_ranking(first)
    at = backend.produce(Partition(rankings, 0), b"something else", b"key")
    later = ranking_payload(replace(ranking, sequence=4))
    backend.produce(Partition(rankings, 0), later.value, later.key, later.headers)
    watching = watch(stream, "--json", "--from-beginning", "--count", "2")
    assert watching.wait() == 0
    assert watching.lines == [first, later.value]
    assert watching.errors == [
        f"stream-fs: {rankings}/0 at offset {at}: the content type None is not a ranking's",
        f"stream-fs: {ranking.key}: 2 rankings between 1 and 4 are missing",
    ]


def test_a_topic_without_rankings_has_an_exit_code(stream: Stream, watch: Watch) -> None:
    watching = watch(stream, "--timeout", "0.5")
    assert watching.wait() == 5
    key = f"{stream.name}/{stream.only}"
    assert watching.errors == [f"stream-fs: {key}: no ranking yet, or none recently"]


def test_an_interrupt_ends_it(stream: Stream, member: MakeMember, watch: Watch) -> None:
    stream.feed(chunks(1))
    member(stream).completes(1)
    watching = watch(stream, "--json")
    watching.wait_for_lines(1)
    watching.process.send_signal(signal.SIGINT)
    assert watching.wait() == 130
    assert watching.errors == []


def test_a_closed_pipe_ends_it(stream: Stream, member: MakeMember, watch: Watch) -> None:
    stream.feed(chunks(2))
    one = member(stream)
    one.completes(1)
    ours, theirs = os.pipe()
    watching = watch(stream, "--json", "--from-beginning", stdout=theirs)
    os.close(theirs)
    with open(ours, "rb") as reader:  # noqa: PTH123  # a pipe has no path
        assert reader.readline()
    one.completes(2)
    stream.feed(chunks(3)[-15:])
    one.completes(3)
    assert watching.wait() == 0
    assert watching.errors == []


def test_a_topic_that_does_not_exist_is_named(make_stream: MakeStream, watch: Watch) -> None:
    stream = make_stream(create=False)
    watching = watch(stream)
    assert watching.wait() == 1
    (errors,) = watching.errors
    assert f"topic {stream.name}.rankings does not exist" in errors


def test_a_broker_that_cannot_be_reached_is_named(make_stream: MakeStream, watch: Watch) -> None:
    nowhere = {"kafka.bootstrap": NOWHERE, "kafka.call_timeout": 2.0}
    watching = watch(make_stream(create=False), changes=nowhere)
    assert watching.wait() == 4
    (errors,) = watching.errors
    assert f"kafka.bootstrap={NOWHERE}" in errors
    assert "Connection refused" in errors
