"""Failed logins and missing rights are reported with what to change."""

from __future__ import annotations

import pytest

from stream_fs.broker import Broker
from stream_fs.errors import FatalError
from stream_fs.kafka import ClientSettings, KafkaTransport, Topics, state_spec
from stream_fs.pipeline.ports import Partition
from tests.integration.kafka.backend import KafkaBackend
from tests.integration.kafka.conftest import PASSWORD, SASL
from tests.support.waiting import Member, until


def alice(broker: Broker, password: str = PASSWORD) -> ClientSettings:
    return ClientSettings(
        broker.address(SASL),
        "group",
        timeout=5.0,
        properties={
            "security.protocol": SASL,
            "sasl.mechanism": "PLAIN",
            "sasl.username": "alice",
            "sasl.password": password,
        },
    )


def test_a_wrong_password_is_named_and_not_shown(own_broker: Broker) -> None:
    settings = alice(own_broker, "wrong-horse")
    with pytest.raises(FatalError, match=r"Authentication failed.*sasl\.password") as caught:
        Topics(settings).check([state_spec("state", 1, 1_000_000)])
    assert "wrong-horse" not in str(caught.value)


def test_a_wrong_password_is_the_connection_error(own_broker: Broker) -> None:
    publisher = KafkaTransport(alice(own_broker, "wrong-horse"), "stream", str).publisher(
        Partition("topic", 0)
    )
    until(lambda: publisher.acquire() or publisher.connection.error is not None, "the error")
    assert "sasl.password" in str(publisher.connection.error)
    publisher.close()


def test_the_wrong_protocol_is_named(own_broker: Broker) -> None:
    settings = ClientSettings(
        own_broker.bootstrap, "group", timeout=2.0, properties={"security.protocol": "SSL"}
    )
    with pytest.raises(FatalError, match=r"security\.protocol"):
        Topics(settings).check([state_spec("state", 1, 1_000_000)])


def test_a_topic_without_rights(own_broker: Broker, own_backend: KafkaBackend) -> None:
    name = own_backend.topic()
    with pytest.raises(FatalError, match=rf"topic {name}.*right to read and write the topic"):
        Topics(alice(own_broker)).check([state_spec(name, 1, 1_000_000)])


def test_a_transactional_id_without_rights(own_broker: Broker, own_backend: KafkaBackend) -> None:
    transport = KafkaTransport(alice(own_broker), "stream", own_backend.state_topic)
    publisher = transport.publisher(Partition(own_backend.topic(), 0))
    with pytest.raises(FatalError, match=r"acquiring group/.*right to write transactional ids"):
        until(publisher.acquire, "the error")
    publisher.close()


def test_a_group_without_rights(own_broker: Broker, own_backend: KafkaBackend) -> None:
    transport = KafkaTransport(alice(own_broker), "stream", own_backend.state_topic)
    member = Member()
    topic = own_backend.topic()
    source = transport.input([topic], member)
    with pytest.raises(FatalError, match="right to read"):
        member.holds(source, {Partition(topic, 0)})
    source.close()


def test_a_state_without_rights(own_broker: Broker, own_backend: KafkaBackend) -> None:
    partition = Partition(own_backend.topic(), 0)
    log = KafkaTransport(alice(own_broker), "stream", own_backend.state_topic).state_log(partition)
    with pytest.raises(FatalError, match="right to read and write the topic"):
        log.end()
    log.close()
