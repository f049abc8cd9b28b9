"""Which broker is used, and what is missing when there is none."""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from stream_fs.broker import (
    BOOTSTRAP_VARIABLE,
    BrokerNotOwned,
    BrokerUnavailable,
    container,
    running_broker,
    session,
)
from stream_fs.broker.session import ExternalBroker

NO_DOCKER = "unix:///nonexistent/docker.sock"


def test_an_existing_broker_cannot_be_configured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(BOOTSTRAP_VARIABLE, "127.0.0.1:9092")
    configured = running_broker(properties={"message.max.bytes": "1000"})
    with pytest.raises(BrokerNotOwned, match="properties"), configured:
        pass


def test_an_existing_broker_must_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session, "_EXTERNAL_SECONDS", 1.0)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = "{}:{}".format(*silent.getsockname())
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


def test_the_error_lists_all_that_is_missing(
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
