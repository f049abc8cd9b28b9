"""Wherever a process is killed, subscribers receive what an undisturbed one publishes."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest

from stream_fs.broker import Broker
from tests.support.recovery.comparison import Published
from tests.support.recovery.crashes import (
    POINTS,
    kill_at,
    kill_randomly,
    kill_together,
    nothing_to_replay,
    shared,
    stop_often,
)
from tests.support.recovery.faulty_service import STEPS
from tests.support.recovery.launchers import Forked
from tests.support.recovery.prepared_stream import Stage, stage
from tests.support.recovery.subscriber import problems

CHUNKS = 100


@pytest.fixture(scope="module")
def staged(broker: Broker, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    with stage(broker, tmp_path_factory.mktemp("recovery"), CHUNKS, Forked) as made:
        yield made


def is_as_expected(found: Published, staged: Stage) -> None:
    rankings, letters = found.against(staged.expected)
    assert rankings.same, rankings
    assert letters.same, letters
    assert found == staged.expected
    assert problems(message.value for message in found.rankings) == []


def test_the_undisturbed_stream_is_complete_and_has_something_of_everything(staged: Stage) -> None:
    found = staged.expected
    assert problems(message.value for message in found.rankings) == []
    rankings = [json.loads(message.value or b"") for message in found.rankings]
    assert len(rankings) == CHUNKS
    counts = [ranking["records"] for ranking in rankings]
    assert sum(count["dead_letters"] for count in counts) == len(found.letters) > CHUNKS
    assert all(sum(count["missing"][view] for count in counts) > CHUNKS for view in ("a", "b"))
    assert len({dict(letter.headers)["stream-fs-reason"] for letter in found.letters}) > 4


def test_no_kill_changes_a_published_byte(staged: Stage) -> None:
    with staged.journey("killed") as journey:
        committed = 0
        for point in POINTS:
            committed = kill_at(journey, point, committed)
        kill_randomly(journey, 5, random.Random(1))
        found = journey.complete()
        is_as_expected(found, staged)
        # Not for want of trying: the aborted ones are in the topic.
        careless = journey.subscriber("rankings", "read_uncommitted")
        everything = careless.everything()
        careless.close()
    assert len(everything) >= CHUNKS + 2
    assert problems(message.value for message in everything)


def test_no_kill_in_a_transaction_of_several_chunks_changes_a_published_byte(staged: Stage) -> None:
    with staged.journey("together") as journey:
        for step in STEPS:
            kill_together(journey, step, 2)
        found = journey.complete()
        assert sum(map(shared, journey.lives)) > CHUNKS // 10
    is_as_expected(found, staged)


def test_an_orderly_end_leaves_nothing_to_replay_and_changes_no_byte(staged: Stage) -> None:
    with staged.journey("stopped") as journey:
        stop_often(journey, times=3, chunks=6)
        found = journey.complete()
        nothing_to_replay(journey.lives[-1], 18)
    is_as_expected(found, staged)
