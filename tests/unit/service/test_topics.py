"""The topics of a stream, planned from its configuration and from what exists."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from stream_fs.kafka import TopicSpec
from stream_fs.kafka.topics import BROKER_DEFAULT, problems
from stream_fs.service.topics import topic_gaps, topic_problems, topic_specs
from tests.support.configurations import LEAST, loaded
from tests.support.existing_topics import Existing

TWO = LEAST.replace('["digits"]', '["a", "b"]')


def by_name(plans: Sequence[TopicSpec]) -> dict[str, TopicSpec]:
    return {plan.name: plan for plan in plans}


def test_every_topic_is_planned(tmp_path: Path) -> None:
    plans = topic_specs(loaded(tmp_path, TWO), Existing({"a": (6, {})}), partitions=3)
    assert {plan.name: plan.partitions for plan in plans} == {
        "a": 6,
        "b": 3,
        "a.state": 6,
        "b.state": 3,
        "digits.rankings": 1,
        "digits.dead-letters": 1,
    }
    assert {plan.name for plan in plans if plan.follows} == {"a.state", "b.state"}
    assert {plan.replication for plan in plans} == {BROKER_DEFAULT}


def test_sizes_follow_the_largest_message(tmp_path: Path) -> None:
    text = f"{LEAST}largest_message = 2000000\n"
    plans = by_name(topic_specs(loaded(tmp_path, text), Existing()))
    assert int(plans["digits"].config["max.message.bytes"]) > 2_000_000
    assert int(plans["digits.rankings"].config["max.message.bytes"]) > 2_000_000
    assert int(plans["digits.dead-letters"].config["max.message.bytes"]) >= 2_000_000 + 65_536


def test_topics_as_they_are_made_have_no_problem(tmp_path: Path) -> None:
    configuration, topics = loaded(tmp_path, TWO), Existing()
    topics.create(topic_specs(configuration, topics, partitions=4, replication=3))
    assert topic_problems(configuration, topics) == []


def test_partitions_that_the_state_lacks_are_a_problem_with_which_the_stream_can_run(
    tmp_path: Path,
) -> None:
    configuration, topics = loaded(tmp_path, TWO), Existing()
    topics.create(topic_specs(configuration, topics, partitions=2))
    topics.found["b"] = (5, topics.found["b"][1])
    (gap,) = topic_gaps(configuration, topics)
    assert "topic b.state has 2 partitions, and needs 5" in gap
    assert topic_problems(configuration, topics) == [gap]
    assert topics.grow(topic_specs(configuration, topics)) == ["b.state"]
    assert topic_gaps(configuration, topics) == topic_problems(configuration, topics) == []


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    found = topic_problems(
        loaded(tmp_path), Existing({"digits": (2, {"cleanup.policy": "delete"})})
    )
    assert len(found) == 3
    assert all("does not exist" in problem and "topics create" in problem for problem in found)


def test_an_input_topic_that_holds_less_is_nothing_to_complain_of(tmp_path: Path) -> None:
    configuration = loaded(tmp_path)
    config = {"cleanup.policy": "delete", "max.message.bytes": "1000"}
    (plan, *_) = topic_specs(configuration, Existing({"digits": (2, config)}))
    assert problems(plan, 2, config) == []


@pytest.mark.parametrize(("allowed", "complaints"), [(1_063_488, 0), (1_063_489, 1)])
def test_an_input_topic_that_holds_more_than_we_can_carry(
    tmp_path: Path, allowed: int, complaints: int
) -> None:
    config = {"cleanup.policy": "delete", "max.message.bytes": str(allowed)}
    configuration, topics = loaded(tmp_path), Existing({"digits": (1, config)})
    topics.create(topic_specs(configuration, topics))
    found = topic_problems(configuration, topics)
    assert len(found) == complaints
    assert all("set kafka.largest_message to 1000001 or more" in problem for problem in found)


def test_a_state_topic_that_allows_less_than_a_part(tmp_path: Path) -> None:
    configuration, topics = loaded(tmp_path), Existing()
    topics.create(topic_specs(configuration, topics))
    partitions, config = topics.found["digits.state"]
    topics.found["digits.state"] = (partitions, {**config, "max.message.bytes": "524288"})
    assert topic_problems(configuration, topics) == [
        "topic digits.state has max.message.bytes=524288, and needs at least 1000000: "
        "set max.message.bytes=1000000 on the topic"
    ]
    smaller = f"{LEAST}largest_message = 500000\n[limits]\nrecord_bytes = 500000\n"
    state = [
        problem
        for problem in topic_problems(loaded(tmp_path, smaller), topics)
        if "digits.state" in problem
    ]
    assert state == []


def test_the_progress_of_a_merge_of_many_partitions(tmp_path: Path) -> None:
    text = f"{LEAST}largest_message = 10000\n[limits]\nrecord_bytes = 10000\n"
    configuration, topics = loaded(tmp_path, text), Existing()
    topics.create(topic_specs(configuration, topics, partitions=2))
    assert topic_problems(configuration, topics) == []
    topics = Existing()
    topics.create(topic_specs(configuration, topics, partitions=1_000))
    assert any(
        problem.startswith("kafka.largest_message: should be at least ")
        and "the progress of the merge" in problem
        for problem in topic_problems(configuration, topics)
    )
