"""The development broker: records, transactions, restarts, and its complete removal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from operator import methodcaller
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from stream_fs.broker import (
    BOOTSTRAP_VARIABLE,
    Broker,
    BrokerNotOwned,
    BrokerUnavailable,
    running_broker,
)
from stream_fs.broker.session import ExternalBroker
from stream_fs.broker.toolchain import Toolchain
from tests.support.processes import mentioning, wait_until
from tests.support.topics import TIMEOUT_SECONDS, Topics, flush

ROOT = Path(__file__).parents[2]
NO_DOCKER = "unix:///nonexistent/docker.sock"


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that these tests may stop; each of them leaves it running."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(BOOTSTRAP_VARIABLE, raising=False)
        log_dir = tmp_path_factory.mktemp("own-broker")
        with running_broker(log_dir=log_dir, listeners={"SECOND": "PLAINTEXT"}) as broker:
            yield broker


def produce(bootstrap: str, topic: str, values: list[bytes]) -> None:
    producer = Producer({"bootstrap.servers": bootstrap, "linger.ms": 0})
    for value in values:
        producer.produce(topic, value)
    flush(producer)


def test_produced_records_are_consumed(broker: Broker, topics: Topics) -> None:
    topic = topics.create(partitions=2)
    values: list[bytes | None] = [b"%d" % number for number in range(100)]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value, partition=1)
    flush(producer)
    assert topics.read(topic, 100, partition=1) == values


def test_only_committed_transactions_are_visible(broker: Broker, topics: Topics) -> None:
    topic = topics.create()
    settings = {"transactional.id": topics.unique("writer"), "bootstrap.servers": broker.bootstrap}
    producer = Producer(settings)
    producer.init_transactions(TIMEOUT_SECONDS)
    for value, commit in ((b"first", True), (b"aborted", False), (b"second", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(TIMEOUT_SECONDS)
        if commit:
            producer.commit_transaction(TIMEOUT_SECONDS)
        else:
            producer.abort_transaction(TIMEOUT_SECONDS)
    assert topics.read(topic, 2) == [b"first", b"second"]


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_broker_restarts_with_its_address_and_data(own_broker: Broker, way: str) -> None:
    address = own_broker.bootstrap
    topics = Topics(address)
    topic = topics.create()
    produce(address, topic, [b"before"])

    methodcaller(way)(own_broker)
    with pytest.raises(KafkaException):
        topics.admin.list_topics(timeout=1)

    own_broker.start()
    assert own_broker.bootstrap == address
    produce(address, topic, [b"after"])
    assert topics.read(topic, 2) == [b"before", b"after"]


def test_the_error_of_a_failed_start_contains_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BOOTSTRAP_VARIABLE, raising=False)
    no_such_key = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/nonexistent.pem"}
    broken = running_broker(listeners={"SECURE": "SSL"}, properties=no_such_key)
    with pytest.raises(BrokerUnavailable) as raised, broken:
        pass
    assert "ended while it was starting" in str(raised.value)
    assert "/nonexistent.pem" in str(raised.value)


def test_a_broker_has_the_requested_listeners(own_broker: Broker) -> None:
    second = own_broker.address("SECOND")
    assert second != own_broker.bootstrap
    assert AdminClient({"bootstrap.servers": second}).list_topics(timeout=TIMEOUT_SECONDS).brokers


def test_nothing_is_left_when_the_parent_is_killed(tmp_path: Path) -> None:
    needs_java()
    environment = {**os.environ, "TMPDIR": str(tmp_path), "DOCKER_HOST": NO_DOCKER}
    environment.pop(BOOTSTRAP_VARIABLE, None)
    program = (
        "import time; from stream_fs.broker import running_broker\n"
        "with running_broker() as broker: print(broker.bootstrap, flush=True); time.sleep(1000)"
    )
    with subprocess.Popen(
        [sys.executable, "-c", program], cwd=ROOT, env=environment, stdout=subprocess.PIPE
    ) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline(), "the broker did not start"
        running_now = mentioning(str(tmp_path)).values()
        assert any("kafka.Kafka" in command for command in running_now)
        parent.send_signal(signal.SIGKILL)
    wait_until(lambda: not mentioning(str(tmp_path)), "the broker and its guard are gone")
    wait_until(lambda: not list(tmp_path.iterdir()), "the broker's data is gone")


def needs_java() -> None:
    if missing := Toolchain.found(os.environ).missing():
        pytest.skip("; ".join(missing))


def test_an_existing_broker_is_used_first_and_not_stopped(
    broker: Broker, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(BOOTSTRAP_VARIABLE, broker.bootstrap)
    monkeypatch.setenv("PATH", "")
    with running_broker() as given:
        assert isinstance(given, ExternalBroker)
        assert given.bootstrap == broker.bootstrap
        for way in ("stop", "kill", "start"):
            with pytest.raises(BrokerNotOwned, match=BOOTSTRAP_VARIABLE):
                methodcaller(way)(given)
    assert AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=60).brokers
