"""Creation, growth, deletion and checks of topics on a broker."""

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
from stream_fs.kafka import Topics as TopicAdmin
from tests.integration.kafka.backend import KafkaBackend
from tests.support.topics import TIMEOUT_SECONDS
from tests.support.waiting import until


@pytest.fixture
def specs(backend: KafkaBackend) -> Iterator[list[TopicSpec]]:
    unique = backend.topics.unique
    specs = [
        input_spec(unique("input"), 3, 2_000_000),
        rankings_spec(unique("rankings"), 1, 1_500_000),
        state_spec(unique("state"), 3, 1_000_000),
        dead_letters_spec(unique("dead"), 1, 2_000_000),
    ]
    yield specs
    existing = TopicAdmin(backend.settings()).partitions([spec.name for spec in specs])
    if existing:
        for deleted in backend.topics.admin.delete_topics(list(existing)).values():
            deleted.result(TIMEOUT_SECONDS)


def test_created_topics_have_no_problems(backend: KafkaBackend, specs: list[TopicSpec]) -> None:
    topics = TopicAdmin(backend.settings())
    names = [spec.name for spec in specs]
    problems = topics.check(specs)
    assert [problem.split()[1] for problem in problems] == names
    assert all("stream-fs topics create" in problem for problem in problems)
    assert topics.create(specs) == names
    until(lambda: len(topics.partitions(names)) == 4, "the topics appear")
    assert topics.partitions(names) == dict(zip(names, (3, 1, 3, 1), strict=True))
    assert topics.check(specs) == []
    assert topics.create(specs) == []
    for spec in specs:
        assert spec.config.items() <= topics.config(spec.name).items()


def test_several_processes_may_create_and_grow_topics_at_once(
    backend: KafkaBackend, specs: list[TopicSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As the pods of a Deployment do, each before it starts."""
    both, partitions = Barrier(2), TopicAdmin.partitions

    def partitions_together(topics: TopicAdmin, names: Sequence[str]) -> dict[str, int]:
        found = partitions(topics, names)
        both.wait(TIMEOUT_SECONDS)
        return found

    monkeypatch.setattr(TopicAdmin, "partitions", partitions_together)
    names = [spec.name for spec in specs]
    state = replace(specs[2], partitions=5)
    with ThreadPoolExecutor(2) as pool:
        processes = [TopicAdmin(backend.settings()) for _ in range(2)]
        made = list(pool.map(lambda topics: topics.create(specs), processes))
        assert sorted(made[0] + made[1]) == sorted(names)
        grown = list(pool.map(lambda topics: topics.grow([state]), processes))
    assert sorted(grown) == [[], [state.name]]
    monkeypatch.undo()
    topics = TopicAdmin(backend.settings())
    until(lambda: topics.partitions([state.name]) == {state.name: 5}, "the topic has grown")


def test_a_group_without_members_is_deleted(backend: KafkaBackend) -> None:
    topic, group = backend.topics.create("input"), backend.topics.unique("group")
    topics = TopicAdmin(backend.settings())
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
    there = backend.topics.admin.list_consumer_groups().result(TIMEOUT_SECONDS).valid
    assert group not in {one.group_id for one in there}


def test_topics_that_differ_from_their_specification(backend: KafkaBackend) -> None:
    name = backend.topics.create("state", partitions=2, config={"cleanup.policy": "delete"})
    partitions, policy = TopicAdmin(backend.settings()).check([state_spec(name, 3, 1_000_000)])
    assert f"topic {name} has 2 partitions, and needs 3" in partitions
    assert f"topic {name} has cleanup.policy=delete, and needs compact" in policy


def test_more_replicas_than_brokers(backend: KafkaBackend, specs: list[TopicSpec]) -> None:
    spec = state_spec(specs[0].name, 1, 1_000_000, replication=3)
    with pytest.raises(FatalError, match="lower the replication factor"):
        TopicAdmin(backend.settings()).create([spec])


def test_the_configuration_of_a_missing_topic(backend: KafkaBackend) -> None:
    with pytest.raises(FatalError, match="stream-fs topics create"):
        TopicAdmin(backend.settings()).config(backend.topics.unique("missing"))


@pytest.mark.parametrize("bootstrap", ["127.0.0.1:1", "nowhere.invalid:9092"])
def test_a_wrong_address_is_reported_with_the_reason(bootstrap: str) -> None:
    topics = TopicAdmin(ClientSettings(bootstrap, "group", timeout=2.0))
    with pytest.raises(FatalError, match=rf"kafka\.bootstrap={bootstrap}") as caught:
        topics.check([state_spec("state", 1, 1_000_000)])
    assert "check kafka.bootstrap" in str(caught.value)
