"""The development broker: what it does, where it comes from, and that nothing of it remains."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from operator import methodcaller
from pathlib import Path

import pytest
from confluent_kafka import KafkaException, Producer
from confluent_kafka.admin import AdminClient

from stream_fs.broker import (
    BOOTSTRAP_VARIABLE,
    Broker,
    BrokerNotOurs,
    BrokerUnavailable,
    container,
    running_broker,
    session,
)
from stream_fs.broker.node import CONTROLLER, Node, render, server_properties
from stream_fs.broker.session import ExternalBroker
from stream_fs.broker.toolchain import Toolchain
from tests.integration.processes import mentioning, wait_until
from tests.integration.topics import PATIENCE_SECONDS, Topics, flush

ROOT = Path(__file__).parents[2]
NO_DOCKER = "unix:///nonexistent/docker.sock"


@pytest.fixture(scope="module")
def own_broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A broker that these tests may take away; each of them leaves it running."""
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


def test_what_is_produced_is_consumed(broker: Broker, topics: Topics) -> None:
    topic = topics.create(partitions=2)
    values: list[bytes | None] = [b"%d" % number for number in range(100)]
    producer = Producer({"bootstrap.servers": broker.bootstrap})
    for value in values:
        producer.produce(topic, value, partition=1)
    flush(producer)
    assert topics.read(topic, 100, partition=1) == values


def test_a_transaction_is_seen_when_it_is_committed_only(broker: Broker, topics: Topics) -> None:
    topic = topics.create()
    settings = {"transactional.id": topics.unique("writer"), "bootstrap.servers": broker.bootstrap}
    producer = Producer(settings)
    producer.init_transactions(PATIENCE_SECONDS)
    for value, commit in ((b"first", True), (b"aborted", False), (b"second", True)):
        producer.begin_transaction()
        producer.produce(topic, value)
        producer.flush(PATIENCE_SECONDS)
        if commit:
            producer.commit_transaction(PATIENCE_SECONDS)
        else:
            producer.abort_transaction(PATIENCE_SECONDS)
    assert topics.read(topic, 2) == [b"first", b"second"]


@pytest.mark.parametrize("way", ["stop", "kill"])
def test_a_broker_comes_back_with_its_address_and_data(own_broker: Broker, way: str) -> None:
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


def test_a_broker_that_cannot_start_shows_its_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(BOOTSTRAP_VARIABLE, raising=False)
    no_such_key = {"ssl.keystore.type": "PEM", "ssl.keystore.location": "/nonexistent.pem"}
    broken = running_broker(listeners={"SECURE": "SSL"}, properties=no_such_key)
    with pytest.raises(BrokerUnavailable) as raised, broken:
        pass
    assert "ended while it was starting" in str(raised.value)
    assert "/nonexistent.pem" in str(raised.value)


def test_a_broker_has_the_listeners_that_were_asked_for(own_broker: Broker) -> None:
    second = own_broker.address("SECOND")
    assert second != own_broker.bootstrap
    assert AdminClient({"bootstrap.servers": second}).list_topics(timeout=PATIENCE_SECONDS).brokers


def test_the_nodes_of_a_cluster_know_each_other() -> None:
    names = ["PLAINTEXT", CONTROLLER]
    nodes = [
        Node(
            id=number,
            host="localhost",
            bind="0.0.0.0",
            ports={name: 10 * number + at for at, name in enumerate(names)},
            data=f"data-{number}",
        )
        for number in (1, 2, 3)
    ]
    protocols = {"PLAINTEXT": "PLAINTEXT"}
    second = server_properties(nodes[1], nodes, protocols, {"log.dirs": "elsewhere"})
    quorum = "127.0.0.1:11,127.0.0.1:21,127.0.0.1:31"
    assert second["controller.quorum.bootstrap.servers"] == quorum
    assert second["listeners"] == "PLAINTEXT://0.0.0.0:20,CONTROLLER://127.0.0.1:21"
    assert second["advertised.listeners"] == "PLAINTEXT://localhost:20"
    assert second["offsets.topic.replication.factor"] == "3"
    assert second["transaction.state.log.min.isr"] == "2"
    assert second["log.dirs"] == "elsewhere"


def test_properties_survive_the_format_of_their_file() -> None:
    assert render({"a": "C:\\x\ny", "b": "1"}) == "a=C:\\\\x\\ny\nb=1\n"


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


def test_the_environment_comes_first(broker: Broker, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BOOTSTRAP_VARIABLE, broker.bootstrap)
    monkeypatch.setenv("PATH", "")
    with running_broker() as given:
        assert isinstance(given, ExternalBroker)
        assert given.bootstrap == broker.bootstrap
        for way in ("stop", "kill", "start"):
            with pytest.raises(BrokerNotOurs, match=BOOTSTRAP_VARIABLE):
                methodcaller(way)(given)
    assert AdminClient({"bootstrap.servers": broker.bootstrap}).list_topics(timeout=60).brokers


def test_a_given_broker_cannot_be_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BOOTSTRAP_VARIABLE, "127.0.0.1:9092")
    configured = running_broker(properties={"message.max.bytes": "1000"})
    with pytest.raises(BrokerNotOurs, match="properties"), configured:
        pass


def test_a_given_broker_must_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_EXTERNAL_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = "{}:{}".format(*deaf.getsockname())
        monkeypatch.setenv(BOOTSTRAP_VARIABLE, address)
        with pytest.raises(BrokerUnavailable, match=address), running_broker():
            pass


def test_docker_comes_before_java(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    calls: list[object] = []

    class FakeContainer(ExternalBroker):
        def __init__(
            self, *, log_dir: Path, protocols: Mapping[str, str], properties: Mapping[str, str]
        ) -> None:
            super().__init__("container:9092", "a test")
            calls.append((log_dir, dict(protocols), dict(properties)))

        def start(self) -> None:
            calls.append("start")

        def remove(self) -> None:
            calls.append("remove")

    monkeypatch.delenv(BOOTSTRAP_VARIABLE, raising=False)
    monkeypatch.setattr(container, "engine_missing", lambda: None)
    monkeypatch.setattr(container, "ContainerBroker", FakeContainer)
    with running_broker(log_dir=tmp_path, properties={"a": "b"}) as chosen:
        assert chosen.bootstrap == "container:9092"
    assert calls == [(tmp_path, {"PLAINTEXT": "PLAINTEXT"}, {"a": "b"}), "start", "remove"]


def test_the_error_says_all_that_is_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for name in (BOOTSTRAP_VARIABLE, "JAVA_HOME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("DOCKER_HOST", NO_DOCKER)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with pytest.raises(BrokerUnavailable) as raised, running_broker():
        pass
    lines = str(raised.value).splitlines()[1:]
    assert [line.split(":")[0].strip(" -") for line in lines] == [
        BOOTSTRAP_VARIABLE,
        "Docker",
        "Java 17 or newer",
        "Maven",
    ]


def fake_tool(path: Path, script: str) -> str:
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_an_old_java_is_told(tmp_path: Path) -> None:
    java = fake_tool(tmp_path / "java", "echo 'openjdk version \"11.0.2\" 2019' >&2")
    tools = Toolchain(java=java, maven="mvn", jars=tmp_path / "jars")
    (sentence,) = tools.missing()
    assert "is Java 11" in sentence


def test_the_jars_are_fetched_once_and_kept(tmp_path: Path) -> None:
    maven = fake_tool(
        tmp_path / "mvn",
        f"""echo fetched >> {tmp_path}/calls
        sleep 0.3
        for argument in "$@"; do
            case $argument in -DoutputDirectory=*) touch "${{argument#*=}}/kafka.jar";; esac
        done""",
    )
    java = fake_tool(tmp_path / "java", "echo 'openjdk version \"21\"' >&2")
    tools = Toolchain(java=java, maven=maven, jars=tmp_path / "cache" / "kafka")
    together = [threading.Thread(target=tools.fetch) for _ in range(3)]
    for thread in together:
        thread.start()
    for thread in together:
        thread.join()
    assert (tmp_path / "calls").read_text() == "fetched\n"

    without_maven = Toolchain(java=java, maven=None, jars=tools.jars)
    assert without_maven.missing() == []
    assert (without_maven.fetch() / "kafka.jar").exists()


def test_a_failed_fetch_leaves_no_half_cache(tmp_path: Path) -> None:
    maven = fake_tool(tmp_path / "mvn", "echo 'cannot resolve'; exit 1")
    tools = Toolchain(java="java", maven=maven, jars=tmp_path / "cache" / "kafka")
    with pytest.raises(BrokerUnavailable, match="cannot resolve"):
        tools.fetch()
    assert [path.name for path in tools.jars.parent.iterdir() if path.is_dir()] == []
