"""The content of merged rankings, and how often they are published."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from typing import Any

import pytest

from stream_fs.checkpoint import MergedPart
from stream_fs.pipeline import events
from stream_fs.pipeline.events import Event
from stream_fs.pipeline.merge import message, snapshot_cache
from stream_fs.pipeline.ports import Partition
from tests.support.drifting_stream import ROWS, drifting_records, drifting_settings
from tests.support.memory_broker import MemoryBroker
from tests.support.merged_stream import (
    EVERY,
    last_sources,
    merged_rankings,
    merging,
    more,
    places,
    saved_model,
    sequences,
    settle,
    sources,
    stream,
)
from tests.support.schemas import validator
from tests.support.simulated_process import (
    RANKINGS,
    STATE,
    TOPIC,
    SimulatedProcess,
    broker,
    fill,
    published,
    records,
)

HOME = Partition(TOPIC, 0)


def test_the_merged_ranking_lists_the_newest_snapshots() -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    settle(process)
    last = merged_rankings(made)[-1]
    assert sources(last) == {0: 1, 1: 1, 2: 1}
    validator("ranking").validate(last)
    for number in range(3):
        more(made, number, 30, seed=10 + number)
    settle(process)
    assert last_sources(made) == {0: 4, 1: 4, 2: 4}


def test_a_merged_ranking_can_be_rebuilt_from_the_models_that_it_lists() -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    settle(process)
    more(made, 1)
    settle(process)
    last = merged_rankings(made)[-1]
    assert last["sequence"] == 2
    models = {place: saved_model(made, place) for place in places(3)}
    assert sources(last) == {place.number: models[place].state.chunk for place in models}
    (again,) = [
        record.value
        for record in message.build_merged_ranking(merging(), HOME, models, None).records
        if record.topic == RANKINGS
    ]
    expected = json.loads(again or b"")
    for name in ("views", "sources", "as_of", "records", "model"):
        assert last[name] == expected[name]
    assert last["as_of"] == max(one.as_of for one in models.values())
    assert last["records"]["total"] == sum(one.state.total for one in models.values())


def test_dead_letters_are_counted_over_all_partitions_and_chunks() -> None:
    made = broker(2)
    for number in range(2):
        fill(made, list(records(80, seed=number, bad_every=9)), number)
    settle(SimulatedProcess(made, merging(checkpoint_every=1)))
    letters = dict.fromkeys(range(2), 0)
    for _, value, _ in published(made):
        ranking = json.loads(value)
        if ranking["scope"] == "partition":
            letters[ranking["partition"]] += ranking["records"]["dead_letters"]
    assert merged_rankings(made)[-1]["records"]["dead_letters"] == sum(letters.values()) > 5


def test_the_selection_is_compared_with_the_previous_merged_ranking() -> None:
    made = stream(count=60)
    process = SimulatedProcess(made, merging())
    for seed in (20, 30):
        settle(process)
        for number in range(3):
            more(made, number, 60, seed=seed + number)
    settle(process)
    found = merged_rankings(made)
    assert len(found) > 2
    assert found[0]["selection"] is None
    for before, after in itertools.pairwise(found):
        for view in after["views"]:
            now = {feature["index"] for feature in view["features"]}
            was = {
                feature["index"]
                for earlier in before["views"]
                if earlier["name"] == view["name"]
                for feature in earlier["features"]
            }
            change = after["selection"][view["name"]]
            assert (set(change["entered"]), set(change["left"])) == (now - was, was - now)


def test_one_partition_needs_no_merged_ranking() -> None:
    made = stream(partitions=1)
    process = SimulatedProcess(made, merging())
    settle(process)
    assert len(published(made)) == 3
    assert merged_rankings(made) == []
    assert not process.of(events.MergeAcquired), "and no publisher for it"


def test_merged_rankings_can_be_turned_off() -> None:
    made = stream()
    process = SimulatedProcess(made, merging(merge_every=None))
    settle(process)
    assert merged_rankings(made) == []
    assert not process.of(events.MergeAcquired)


class Timed(list[Event]):
    """Events, with the times of merged rankings."""

    def __init__(self) -> None:
        super().__init__()
        self.process: SimulatedProcess
        self.times: list[float] = []

    def append(self, event: Event) -> None:
        super().append(event)
        if isinstance(event, events.MergedCommitted):
            self.times.append(self.process.now)


def test_the_rate_is_limited() -> None:
    made = stream(count=20)
    observed = Timed()
    process = observed.process = SimulatedProcess(
        made, merging(checkpoint_every=1), events=observed
    )
    for number in range(60):  # more is new than may be published
        more(made, number % 3, 15, seed=number)
        assert process.run(12)
        process.now += EVERY / 10
    assert len(observed.times) >= 4
    waits = [after - before for before, after in itertools.pairwise(observed.times)]
    assert min(waits) >= EVERY
    assert max(waits) < 2 * EVERY


def test_a_refresh_ends_even_if_every_turn_is_slow() -> None:
    made = stream(partitions=6)
    process = SimulatedProcess(made, merging())
    process.until(lambda: all(not task.busy for task in process.worker.tasks) and process.now > 0.1)
    for _ in range(30):
        process.now += 2 * snapshot_cache.TIMEOUT_SECONDS
        assert process.run(1)
    assert last_sources(made) == dict.fromkeys(range(6), 1)
    assert not process.of(events.SourceSkipped)


def test_nothing_is_published_without_a_new_snapshot() -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    settle(process)
    count, end = len(merged_rankings(made)), made.log(STATE, 0).end
    settle(process, rounds=5)
    assert len(merged_rankings(made)) == count
    assert made.log(STATE, 0).end == end


def test_models_that_cannot_be_merged_are_refused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made = stream()
    process = SimulatedProcess(made, merging())
    monkeypatch.setattr(message, "merge", lambda _: not_finite(made))
    settle(process, rounds=4)
    assert merged_rankings(made) == []
    (failed,) = process.of(events.MergeFailed)
    assert failed.outcome == "refused"
    monkeypatch.undo()
    more(made, 0)
    settle(process)
    assert sequences(made) == [1]


def test_rankings_of_other_parameters_are_not_compared() -> None:
    made = stream()
    assert SimulatedProcess(made, merging(merge_every=None)).run()
    models = {place: saved_model(made, place) for place in places(3)}
    first = message.build_merged_ranking(merging(), HOME, models, None)
    assert first.progress.parts == tuple(MergedPart(TOPIC, number, 1) for number in range(3))
    again = message.build_merged_ranking(merging(), HOME, models, first.progress)
    assert set(again.overlap.values()) == {1.0}
    changed = replace(first.progress, fingerprint="other")
    assert message.build_merged_ranking(merging(), HOME, models, changed).overlap == {}


def test_the_overlap_of_merged_rankings_is_that_of_the_leading_features() -> None:
    """Even if all features are published, since the progress does not keep their order."""
    every = {"merge_every": EVERY, "checkpoint_every": 1}
    made = broker(2)
    process = SimulatedProcess(made, drifting_settings(**every))
    values = list(drifting_records(3))
    for begin in range(0, len(values), ROWS):
        for number in range(2):
            fill(made, values[begin : begin + ROWS], number)
        settle(process)
    *_, before, last = process.of(events.MergedCommitted)
    assert last.overlap == {
        now.name: len({*now.order[:count]} & {*then.order[:count]}) / count
        for now, then, count in zip(last.ranking.views, before.ranking.views, (10, 3), strict=True)
    }
    assert max(last.overlap.values()) < 1
    assert merged_rankings(made)[-1]["selection"]["wide"]["overlap"] == 1

    process.kill()
    successor = SimulatedProcess(made, drifting_settings(**every))
    fill(made, values[:ROWS], 0)
    settle(successor)
    first, *_ = successor.of(events.MergedCommitted)
    assert (first.sequence, first.overlap) == (last.sequence + 1, {})


def not_finite(made: MemoryBroker) -> Any:
    state = saved_model(made, HOME).state
    return replace(state, alpha=state.alpha * float("nan"))
