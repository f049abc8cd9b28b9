"""What the topics of a stream have to be like."""

from __future__ import annotations

import pytest

from stream_fs.kafka import (
    TopicSpec,
    dead_letters_spec,
    input_spec,
    rankings_spec,
    state_spec,
)
from stream_fs.kafka.topics import problems

PLANS = {
    "input": input_spec("input", 4, 1_000_000),
    "rankings": rankings_spec("rankings", 1, 1_000_000),
    "state": state_spec("state", 4, 1_000_000),
    "dead letters": dead_letters_spec("dead", 1, 1_000_000),
}


def test_rankings_are_complete_for_a_week_and_the_newest_stay() -> None:
    config = PLANS["rankings"].config
    assert config["cleanup.policy"] == "compact"
    assert int(config["min.compaction.lag.ms"]) == 7 * 24 * 3600 * 1000


def test_dead_letters_have_room_for_the_largest_input_and_its_headers() -> None:
    largest = int(PLANS["dead letters"].config["max.message.bytes"])
    assert largest == 1_000_000 + 64 * 1024


def test_state_is_compacted_soon() -> None:
    config = PLANS["state"].config
    assert config["cleanup.policy"] == "compact"
    assert int(config["segment.bytes"]) < 2**30


@pytest.mark.parametrize(
    ("largest", "needed"),
    [(2_000, 6_096), (500_000, 504_096), (1_000_000, 1_000_000), (5_000_000, 1_000_000)],
)
def test_the_state_topic_has_to_allow_parts_and_batches(largest: int, needed: int) -> None:
    plan = state_spec("state", 4, largest)
    assert problems(plan, 4, {**plan.config, "max.message.bytes": str(needed)}) == []
    (problem,) = problems(plan, 4, {**plan.config, "max.message.bytes": str(needed - 1)})
    assert f"set max.message.bytes={needed} on the topic" in problem


def test_one_of_three_replicas_may_be_missing() -> None:
    assert state_spec("state", 4, 1_000_000, replication=3).config["min.insync.replicas"] == "2"
    assert "min.insync.replicas" not in state_spec("state", 4, 1_000_000, replication=1).config
    assert "min.insync.replicas" not in state_spec("state", 4, 1_000_000).config


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_a_topic_as_planned_has_no_problems(plan: TopicSpec) -> None:
    assert problems(plan, plan.partitions, plan.config) == []


@pytest.mark.parametrize("plan", PLANS.values(), ids=PLANS.keys())
def test_another_cleanup_policy_is_a_problem(plan: TopicSpec) -> None:
    wrong = {"cleanup.policy": "compact,delete"}
    (problem,) = problems(plan, plan.partitions, {**plan.config, **wrong})
    wanted = plan.config["cleanup.policy"]
    assert f"topic {plan.name} has cleanup.policy=compact,delete" in problem
    assert f"set cleanup.policy={wanted}" in problem


def test_more_room_than_needed_is_no_problem_and_less_is() -> None:
    plan = PLANS["dead letters"]
    assert problems(plan, 1, {**plan.config, "max.message.bytes": "99999999"}) == []
    (problem,) = problems(plan, 1, {**plan.config, "max.message.bytes": "1048588"})
    assert "needs at least 1065536" in problem


def test_the_state_topic_has_as_many_partitions_as_its_input() -> None:
    plan = PLANS["state"]
    (problem,) = problems(plan, 3, plan.config)
    assert "topic state has 3 partitions, and needs 4" in problem
    assert "`stream-fs topics create`" in problem
    # Those of partitions that the input is about to get.
    assert problems(plan, 5, plan.config) == []


def test_the_others_may_have_any_number() -> None:
    for name in ("input", "rankings", "dead letters"):
        assert problems(PLANS[name], 7, PLANS[name].config) == []


def test_what_we_write_is_stamped_by_the_broker() -> None:
    stamped = {name for name, plan in PLANS.items() if "LogAppendTime" in plan.config.values()}
    assert stamped == {"rankings", "state", "dead letters"}
