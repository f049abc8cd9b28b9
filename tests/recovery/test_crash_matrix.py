"""Wherever a process is killed, the published bytes are those of an undisturbed process.

The same matrix in memory, with the executors, is tests/unit/pipeline/partition/test_recovery.py.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from stream_fs.broker import Broker
from tests.support.recovery.comparison import Published
from tests.support.recovery.crashes import (
    CRASH_MATRIX,
    count_batched_chunks,
    expect_nothing_to_replay,
    kill_at,
    kill_at_random,
    stop_repeatedly,
)
from tests.support.recovery.launchers import Forked
from tests.support.recovery.prepared_stream import PreparedStream, prepare_stream
from tests.support.recovery.subscriber import problems

CHUNKS = 80


@pytest.fixture(scope="module")
def prepared(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[PreparedStream]:
    with prepare_stream(broker, tmp_path_factory.mktemp("recovery"), CHUNKS, Forked) as made:
        yield made


def assert_undisturbed(found: Published, prepared: PreparedStream) -> None:
    rankings, letters = found.against(prepared.expected)
    assert rankings.same, rankings
    assert letters.same, letters
    assert found == prepared.expected
    assert problems(message.value for message in found.rankings) == []


def test_the_undisturbed_stream_is_complete_and_has_bad_records_and_missing_views(
    prepared: PreparedStream,
) -> None:
    found = prepared.expected
    assert problems(message.value for message in found.rankings) == []
    rankings = [json.loads(message.value or b"") for message in found.rankings]
    assert len(rankings) == CHUNKS
    counts = [ranking["records"] for ranking in rankings]
    assert sum(count["dead_letters"] for count in counts) == len(found.letters) > CHUNKS
    assert all(sum(count["missing"][view] for count in counts) > CHUNKS for view in ("a", "b"))
    assert len({dict(letter.headers)["stream-fs-reason"] for letter in found.letters}) > 4


@pytest.mark.parametrize("linger", [False, True], ids=["single-chunks", "batches"])
def test_a_kill_at_any_step_changes_no_published_byte(
    prepared: PreparedStream, linger: bool, subtests: pytest.Subtests
) -> None:
    """One run for each value of linger: its processes are killed at one point after the other."""
    points = [point for point in CRASH_MATRIX if point.linger is linger]
    with prepared.new_run("batches" if linger else "single-chunks") as stream_run:
        committed = 0
        for point in points:
            with subtests.test(str(point)):
                committed = kill_at(stream_run, point, committed)
                stream_run.published()
                received = stream_run.rankings.messages
                assert received == prepared.expected.rankings[: len(received)]
        if linger:
            found = stream_run.complete()
            assert sum(map(count_batched_chunks, stream_run.processes)) > CHUNKS // 10
        else:
            kill_at_random(stream_run, 5, random.Random(1))
            found = stream_run.complete()
        assert_undisturbed(found, prepared)
        # A subscriber that reads uncommitted messages sees aborted transactions.
        uncommitted = stream_run.subscriber("rankings", "read_uncommitted")
        everything = uncommitted.everything()
        uncommitted.close()
    assert len(everything) >= CHUNKS + 2
    assert problems(message.value for message in everything)


def test_a_graceful_shutdown_leaves_nothing_to_replay_and_changes_no_byte(
    prepared: PreparedStream,
) -> None:
    with prepared.new_run("stopped") as stream_run:
        stop_repeatedly(stream_run, times=3, chunks=6)
        found = stream_run.complete()
        expect_nothing_to_replay(stream_run.processes[-1], 18)
    assert_undisturbed(found, prepared)
