"""Topics are made as planned, and what is wrong with them is told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from threading import Barrier

import pytest
from confluent_kafka import Consumer, TopicPartition

from stream_fs.errors import FatalError
from stream_fs.kafka import (
    ClientSettings,
    TopicSpec,
    dead_letters_spec,
    input_spec,
    rankings_spec,
    state_spec,
)
from stream_fs.kafka import Topics as Plans
from tests.contracts.waiting import until
from tests.integration.kafka.backend import KafkaBackend
from tests.integration.topics import PATIENCE_SECONDS


@pytest.fixture
def plans(backend: KafkaBackend) -> Iterator[list[TopicSpec]]:
    unique = backend.topics.unique
    plans = [
        input_spec(unique("input"), 3, 2_000_000),
        rankings_spec(unique("rankings"), 1, 1_500_000),
        state_spec(unique("state"), 3, 1_000_000),
        dead_letters_spec(unique("dead"), 1, 2_000_000),
    ]
    yield plans
    existing = Plans(backend.settings()).partitions([plan.name for plan in plans])
    if existing:
        for deleted in backend.topics.admin.delete_topics(list(existing)).values():
            deleted.result(PATIENCE_SECONDS)


def test_planned_topics_are_made_and_have_no_problems(
    backend: KafkaBackend, plans: list[TopicSpec]
) -> None:
    topics = Plans(backend.settings())
    names = [plan.name for plan in plans]
    problems = topics.check(plans)
    assert [problem.split()[1] for problem in problems] == names
    assert all("stream-fs topics create" in problem for problem in problems)
    assert topics.create(plans) == names
    until(lambda: len(topics.partitions(names)) == 4, "the topics appear")
    assert topics.partitions(names) == dict(zip(names, (3, 1, 3, 1), strict=True))
    assert topics.check(plans) == []
    assert topics.create(plans) == []
    for plan in plans:
        assert plan.config.items() <= topics.config(plan.name).items()


def test_several_processes_may_make_and_grow_topics_at_once(
    backend: KafkaBackend, plans: list[TopicSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the pods of a Deployment do, each before it starts."""
    both, look = Barrier(2), Plans.partitions

    def look_together(topics: Plans, names: Sequence[str]) -> dict[str, int]:
        found = look(topics, names)
        both.wait(PATIENCE_SECONDS)
        return found

    monkeypatch.setattr(Plans, "partitions", look_together)
    names = [plan.name for plan in plans]
    state = replace(plans[2], partitions=5)
    with ThreadPoolExecutor(2) as pool:
        processes = [Plans(backend.settings()) for _ in range(2)]
        made = list(pool.map(lambda topics: topics.create(plans), processes))
        assert sorted(made[0] + made[1]) == sorted(names)
        grown = list(pool.map(lambda topics: topics.grow([state]), processes))
    assert sorted(grown) == [[], [state.name]]
    monkeypatch.undo()
    topics = Plans(backend.settings())
    until(lambda: topics.partitions([state.name]) == {state.name: 5}, "the topic has grown")


def test_a_group_is_deleted_when_nobody_is_in_it(backend: KafkaBackend) -> None:
    topic, group = backend.topics.create("input"), backend.topics.unique("group")
    topics = Plans(backend.settings())
    topics.delete_group(group)  # there is none
    address = {"bootstrap.servers": backend.topics.bootstrap}
    consumer = Consumer({**address, "group.id": group, "enable.auto.commit": False})
    consumer.subscribe([topic])
    until(lambda: not consumer.poll(0.1) and bool(consumer.assignment()), "it has joined")
    with pytest.raises(FatalError, match=f"deleting consumer group {group}"):
        topics.delete_group(group)
    consumer.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    consumer.close()
    topics.delete_group(group)
    there = backend.topics.admin.list_consumer_groups().result(PATIENCE_SECONDS).valid
    assert group not in {one.group_id for one in there}


def test_topics_that_are_not_as_planned(backend: KafkaBackend) -> None:
    name = backend.topics.create("state", partitions=2, config={"cleanup.policy": "delete"})
    partitions, policy = Plans(backend.settings()).check([state_spec(name, 3, 1_000_000)])
    assert f"topic {name} has 2 partitions, and needs 3" in partitions
    assert f"topic {name} has cleanup.policy=delete, and needs compact" in policy


def test_more_replicas_than_brokers(backend: KafkaBackend, plans: list[TopicSpec]) -> None:
    plan = state_spec(plans[0].name, 1, 1_000_000, replication=3)
    with pytest.raises(FatalError, match="lower the replication factor"):
        Plans(backend.settings()).create([plan])


def test_the_configuration_of_a_topic_that_is_not_there(backend: KafkaBackend) -> None:
    with pytest.raises(FatalError, match="stream-fs topics create"):
        Plans(backend.settings()).config(backend.topics.unique("missing"))


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:1", "nowhere.invalid:9092"])
def test_a_wrong_address_is_named_with_the_reason(bootstrap: str) -> None:
    topics = Plans(ClientSettings(bootstrap, "group", timeout=2.0))
    with pytest.raises(FatalError, match=rf"kafka\.bootstrap={bootstrap}") as caught:
        topics.check([state_spec("state", 1, 1_000_000)])
    assert "check kafka.bootstrap" in str(caught.value)
