"""An operator moves a partition, while a process is at work on it."""

from __future__ import annotations

import json

import pytest

from stream_fs.errors import InvalidParameter
from stream_fs.pipeline import events
from stream_fs.pipeline.administration import begin_at, forget, standing
from stream_fs.pipeline.ports import Partition
from tests.unit.pipeline.lives import STATE, TOPIC, Life, broker, fill, published, records, settings

PLACE = Partition(TOPIC, 0)
VALUES = list(records(120))


def begun() -> Life:
    made = broker()
    fill(made, VALUES)
    life = Life(made, settings())
    assert life.run()
    return life


def sequences(life: Life) -> list[int]:
    return [json.loads(value)["sequence"] for _, value, _ in published(life.broker)]


def test_standing_tells_how_far_it_is() -> None:
    life = begun()
    found = standing(life.broker.transport("g", {TOPIC: STATE}), PLACE)
    assert found.progress is not None
    assert (found.first, found.end) == (0, 120)
    assert found.next_offset == found.progress.next_offset == 20 + 6 * 15
    assert found.progress.chunk == 7


def test_before_the_first_chunk_it_stands_at_the_beginning() -> None:
    made = broker()
    fill(made, VALUES[:5])
    made.delete_below(TOPIC, 0, 2)
    found = standing(made.transport("g", {TOPIC: STATE}), PLACE)
    assert (found.progress, found.next_offset) == (None, 2)


def test_a_forgotten_model_begins_anew_in_the_running_process() -> None:
    life = begun()
    forget(life.broker.transport("g", {TOPIC: STATE}), settings(), PLACE)
    fill(life.broker, list(records(15, seed=1)))
    assert life.run()
    assert life.of(events.Fenced)
    assert sequences(life) == [*range(1, 8), *range(1, 9)]
    first, again = (json.loads(published(life.broker)[n][1]) for n in (0, 7))
    assert first == again


def test_at_an_offset_it_begins_anew_there() -> None:
    life = begun()
    begin_at(life.broker.transport("g", {TOPIC: STATE}), settings(), PLACE, 60, keep_model=False)
    life.die()
    assert Life(life.broker, settings()).run()
    after = [json.loads(value) for _, value, _ in published(life.broker)][7:]
    assert [(r["sequence"], r["offsets"]["from"]) for r in after] == [(1, 60), (2, 80), (3, 95)]


def test_a_kept_model_goes_on_with_its_sequence() -> None:
    life = begun()
    begin_at(life.broker.transport("g", {TOPIC: STATE}), settings(), PLACE, 100, keep_model=True)
    life.die()
    assert Life(life.broker, settings()).run()
    last = json.loads(published(life.broker)[-1][1])
    assert (last["sequence"], last["offsets"]["from"]) == (8, 100)
    assert last["records"]["total"] > 100


@pytest.mark.parametrize("offset", [-1, 121])
def test_an_offset_that_the_input_does_not_have_is_refused(offset: int) -> None:
    life = begun()
    with pytest.raises(InvalidParameter, match=r"holds \[0, 120\)"):
        begin_at(
            life.broker.transport("g", {TOPIC: STATE}), settings(), PLACE, offset, keep_model=False
        )


def test_no_model_can_be_kept_where_there_is_none() -> None:
    made = broker()
    fill(made, VALUES)
    with pytest.raises(InvalidParameter, match="no model"):
        begin_at(made.transport("g", {TOPIC: STATE}), settings(), PLACE, 5, keep_model=True)
