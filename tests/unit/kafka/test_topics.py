"""Specifications of topics, and a broker that does not answer."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any

import pytest

from stream_fs.errors import FatalError
from stream_fs.kafka import (
    ClientSettings,
    Topics,
    TopicSpec,
    dead_letters_spec,
    input_spec,
    rankings_spec,
    state_spec,
    topics,
)
from stream_fs.kafka.topics import problems

SPECS = {
    "input": input_spec("input", 4, 1_000_000),
    "rankings": rankings_spec("rankings", 1, 1_000_000),
    "state": state_spec("state", 4, 1_000_000),
    "dead letters": dead_letters_spec("dead", 1, 1_000_000),
}


def test_all_rankings_are_kept_for_a_week_and_the_newest_for_ever() -> None:
    config = SPECS["rankings"].config
    assert config["cleanup.policy"] == "compact"
    assert int(config["min.compaction.lag.ms"]) == 7 * 24 * 3600 * 1000


def test_dead_letters_have_room_for_the_largest_input_and_its_headers() -> None:
    largest = int(SPECS["dead letters"].config["max.message.bytes"])
    assert largest == 1_000_000 + 64 * 1024


def test_state_has_small_segments() -> None:
    config = SPECS["state"].config
    assert config["cleanup.policy"] == "compact"
    assert int(config["segment.bytes"]) < 2**30


@pytest.mark.parametrize(
    ("largest", "needed"),
    [(2_000, 6_096), (500_000, 504_096), (1_000_000, 1_000_000), (5_000_000, 1_000_000)],
)
def test_the_state_topic_has_to_allow_parts_of_snapshots_and_batches(
    largest: int, needed: int
) -> None:
    spec = state_spec("state", 4, largest)
    assert problems(spec, 4, {**spec.config, "max.message.bytes": str(needed)}) == []
    (problem,) = problems(spec, 4, {**spec.config, "max.message.bytes": str(needed - 1)})
    assert f"set max.message.bytes={needed} on the topic" in problem


def test_one_of_three_replicas_may_be_missing() -> None:
    assert state_spec("state", 4, 1_000_000, replication=3).config["min.insync.replicas"] == "2"
    assert "min.insync.replicas" not in state_spec("state", 4, 1_000_000, replication=1).config
    assert "min.insync.replicas" not in state_spec("state", 4, 1_000_000).config


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_a_topic_as_specified_has_no_problems(spec: TopicSpec) -> None:
    assert problems(spec, spec.partitions, spec.config) == []


@pytest.mark.parametrize("spec", SPECS.values(), ids=SPECS.keys())
def test_another_cleanup_policy_is_a_problem(spec: TopicSpec) -> None:
    wrong = {"cleanup.policy": "compact,delete"}
    (problem,) = problems(spec, spec.partitions, {**spec.config, **wrong})
    wanted = spec.config["cleanup.policy"]
    assert f"topic {spec.name} has cleanup.policy=compact,delete" in problem
    assert f"set cleanup.policy={wanted}" in problem


def test_a_smaller_message_size_is_a_problem_and_a_larger_is_not() -> None:
    spec = SPECS["dead letters"]
    assert problems(spec, 1, {**spec.config, "max.message.bytes": "99999999"}) == []
    (problem,) = problems(spec, 1, {**spec.config, "max.message.bytes": "1048588"})
    assert "needs at least 1065536" in problem


def test_the_state_topic_has_as_many_partitions_as_its_input() -> None:
    spec = SPECS["state"]
    (problem,) = problems(spec, 3, spec.config)
    assert "topic state has 3 partitions, and needs 4" in problem
    assert "`stream-fs topics create`" in problem
    # More are for partitions that the input topic is about to get.
    assert problems(spec, 5, spec.config) == []


def test_other_topics_may_have_any_number_of_partitions() -> None:
    for name in ("input", "rankings", "dead letters"):
        assert problems(SPECS[name], 7, SPECS[name].config) == []


def test_the_broker_sets_the_timestamps_of_what_the_service_writes() -> None:
    stamped = {name for name, spec in SPECS.items() if "LogAppendTime" in spec.config.values()}
    assert stamped == {"rankings", "state", "dead letters"}


class SilentAdmin:
    def describe_configs(self, resources: list[Any], **_: Any) -> dict[Any, Future[Any]]:
        return {resource: Future() for resource in resources}

    def poll(self, _: float) -> int:
        return 0


def test_a_client_that_exceeds_its_timeout_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(topics, "admin_client", lambda *_: SilentAdmin())
    monkeypatch.setattr(topics, "_SPARE_SECONDS", 0.01)
    client = Topics(ClientSettings("nowhere:9092", "group", timeout=0.01))
    with pytest.raises(FatalError, match=r"topic a: no answer from kafka\.bootstrap=nowhere:9092"):
        client.config("a")
