"""The properties of every client."""

from __future__ import annotations

from typing import Any

import pytest

from stream_fs.errors import InvalidParameter
from stream_fs.kafka import ClientSettings, KafkaTransport, Rebalance
from stream_fs.kafka.clients import state_consumer, transactional_producer
from stream_fs.kafka.errors import ConnectionState
from stream_fs.kafka.settings import Property, is_secret


def settings(**more: Any) -> ClientSettings:
    return ClientSettings("broker:9092", "group", **more)


def test_the_client_commits_and_skips_nothing_by_itself() -> None:
    for properties in (settings().consumer(), settings().state_reader()):
        assert properties["enable.auto.commit"] is False
        assert properties["enable.auto.offset.store"] is False
        assert properties["auto.offset.reset"] == "error"
        assert properties["allow.auto.create.topics"] is False


@pytest.mark.parametrize(
    ("rebalance", "expected"),
    [
        (Rebalance.EAGER, {"partition.assignment.strategy": "range"}),
        (Rebalance.COOPERATIVE, {"partition.assignment.strategy": "cooperative-sticky"}),
        (Rebalance.CONSUMER, {"group.protocol": "consumer"}),
    ],
)
def test_the_rebalance_protocol(rebalance: Rebalance, expected: dict[str, str]) -> None:
    properties = settings(rebalance=rebalance).consumer()
    names = {"partition.assignment.strategy", "group.protocol"}
    assert {name: properties[name] for name in names & properties.keys()} == expected


def test_only_committed_records_are_read() -> None:
    chosen = settings()
    for reading in (chosen.consumer(), chosen.state_reader(), chosen.ranking_reader()):
        assert reading["isolation.level"] == "read_committed"
    with pytest.raises(InvalidParameter, match=r"isolation\.level cannot be set"):
        settings(properties={"isolation.level": "read_uncommitted"})


def test_the_state_reader_is_not_in_the_group() -> None:
    properties = settings(rebalance=Rebalance.CONSUMER).state_reader()
    assert "group.protocol" not in properties


def test_the_producer_is_transactional() -> None:
    properties = settings(
        transaction_timeout=12.5, largest_message=2_000_000
    ).transactional_producer("g/t/0")
    assert properties["transactional.id"] == "g/t/0"
    assert properties["transaction.timeout.ms"] == 12_500
    assert properties["message.max.bytes"] == 2_065_536


def test_a_batch_is_no_larger_than_every_topic_allows() -> None:
    """The client does not divide a batch that the broker refuses."""

    def size(largest: int, **properties: Property) -> int:
        chosen = settings(largest_message=largest, properties=properties)
        (both,) = {
            chosen.transactional_producer("id")["batch.size"],
            chosen.record_producer()["batch.size"],
        }
        return int(both)

    assert size(1_000_000) == size(5_000_000) == 1_000_000
    assert size(500_000) == size(500_000, **{"batch.size": "2000000"}) == 500_000
    assert size(500_000, **{"batch.size": 1000}) == 1000
    assert size(5_000_000, **{"batch.size": 2_000_000}) == 1_000_000


def test_the_socket_timeout_is_no_longer_than_a_call_waits() -> None:
    def limits(**more: Any) -> list[int]:
        chosen = settings(**more)
        clients = (
            chosen.consumer(),
            chosen.state_reader(),
            chosen.transactional_producer("id"),
            chosen.admin(),
        )
        return [properties["socket.timeout.ms"] for properties in clients]

    assert limits() == [30_000, 30_000, 30_000, 10_000]
    assert limits(timeout=5.0) == [5_000] * 4
    # A transaction must not time out before the connection does.
    assert limits(transaction_timeout=20.0) == [30_000, 30_000, 10_000, 10_000]
    assert limits(timeout=0.1) == [2_000] * 4
    assert limits(timeout=9999.0, transaction_timeout=900.0) == [300_000, 300_000, 300_000, 10_000]
    assert limits(properties={"socket.timeout.ms": 1234}) == [1234] * 4


def test_the_users_properties_override_the_measured_defaults() -> None:
    chosen = settings(properties={"fetch.queue.backoff.ms": 50, "retry.backoff.ms": 20})
    assert settings().consumer()["fetch.queue.backoff.ms"] == 10
    assert chosen.consumer()["fetch.queue.backoff.ms"] == 50
    assert settings().transactional_producer("id")["retry.backoff.ms"] == 10
    assert chosen.transactional_producer("id")["retry.backoff.ms"] == 20


def test_a_client_gets_only_properties_that_it_reads() -> None:
    shared = {"security.protocol": "SSL", "ssl.ca.location": "/ca.pem"}
    reading = {"fetch.min.bytes": 1, "max.poll.interval.ms": 1000, "session.timeout.ms": 1000}
    writing = {"compression.type": "zstd", "linger.ms": 5, "batch.size": 1000}
    chosen = settings(properties={**shared, **reading, **writing})
    given = {**shared, **reading, **writing}.items()
    assert chosen.consumer().items() & given == (shared | reading).items()
    assert chosen.state_reader().items() & given == (shared | reading).items()
    assert chosen.transactional_producer("id").items() & given == (shared | writing).items()
    assert chosen.admin().items() & given == shared.items()


@pytest.mark.parametrize(
    "name",
    [
        "acks",
        "auto.offset.reset",
        "bootstrap.servers",
        "enable.auto.commit",
        "enable.idempotence",
        "group.id",
        "group.protocol",
        "message.max.bytes",
        "partition.assignment.strategy",
        "transaction.timeout.ms",
        "transactional.id",
    ],
)
def test_properties_that_correctness_depends_on_cannot_be_set(name: str) -> None:
    with pytest.raises(InvalidParameter, match=rf"^{name} cannot be set: \w+"):
        settings(properties={name: "anything"})


@pytest.mark.parametrize("name", ["session.timeout.ms", "heartbeat.interval.ms"])
def test_properties_of_the_broker_cannot_be_set_with_kip_848(name: str) -> None:
    settings(properties={name: 6000})
    with pytest.raises(InvalidParameter, match=f"^{name} cannot be set .*group.consumer.{name}"):
        settings(properties={name: 6000}, rebalance=Rebalance.CONSUMER)


@pytest.mark.parametrize(
    ("wrong", "named"),
    [
        ({"bootstrap": " "}, "bootstrap"),
        ({"group": ""}, "group"),
        ({"timeout": 0}, "timeout"),
        ({"transaction_timeout": -1.0}, "transaction_timeout"),
        ({"largest_message": 0}, "largest_message"),
        ({"properties": {"client.rack": ["a"]}}, "client.rack"),
    ],
)
def test_invalid_values_are_refused_by_name(wrong: dict[str, Any], named: str) -> None:
    with pytest.raises(InvalidParameter, match=f"^{named}: "):
        ClientSettings(**({"bootstrap": "broker:9092", "group": "group"} | wrong))


def test_an_unknown_property_is_named() -> None:
    with pytest.raises(InvalidParameter, match=r"fetch\.min\.byts"):
        state_consumer(settings(properties={"fetch.min.byts": 1}), ConnectionState())
    with pytest.raises(InvalidParameter, match=r"no\.such\.property"):
        KafkaTransport(settings(properties={"no.such.property": 1}), "stream", str)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.jaas.config",
        "sasl.oauthbearer.assertion.private.key.passphrase",
        "sasl.oauthbearer.assertion.private.key.pem",
        "sasl.oauthbearer.client.credentials.client.secret",
        "sasl.oauthbearer.client.secret",
        "sasl.oauthbearer.config",
        "sasl.password",
        "ssl.key.password",
        "ssl.key.pem",
        "ssl.keystore.password",
    ],
)
def test_properties_with_secrets_are_recognised_by_name(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        "sasl.username",
        "sasl.oauthbearer.client.id",
        "sasl.oauthbearer.token.endpoint.url",
        "ssl.ca.pem",
        "ssl.certificate.pem",
        "ssl.key.location",
    ],
)
def test_other_properties_may_be_shown(name: str) -> None:
    assert not is_secret(name)


def test_secrets_are_not_shown() -> None:
    properties = {"sasl.password": "hunter2", "ssl.key.password": "hunter3", "client.rack": "r1"}
    chosen = settings(properties=properties)
    assert "hunter" not in repr(chosen)
    text = "hunter2 and hunter3 do not work in r1"
    assert chosen.redacted(text) == "*** and *** do not work in r1"


def test_secrets_are_not_shown_when_a_client_cannot_be_made() -> None:
    # The library repeats the value that it cannot use.
    chosen = settings(properties={"ssl.key.pem": "hunter2", "security.protocol": "SSL"})
    with pytest.raises(InvalidParameter) as caught:
        transactional_producer(chosen, "id", ConnectionState())
    assert "hunter2" not in str(caught.value)
    assert caught.value.__cause__ is None
