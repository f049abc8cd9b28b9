"""Apache Kafka in a container, through testcontainers.

The reaper of testcontainers removes the container when this process dies. Imported only where a
broker is started: the service does not need Docker.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from docker.errors import DockerException  # type: ignore[import-untyped]  # it ships no types
from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient, get_docker_host

from stream_fs.broker import node
from stream_fs.broker.node import (
    CLUSTER_ID,
    CONTROLLER,
    PLAINTEXT,
    STARTED,
    Broker,
    BrokerUnavailable,
    Node,
    await_start,
    free_ports,
    render,
    server_properties,
)
from stream_fs.broker.toolchain import KAFKA_VERSION

_DEFAULT_ENGINE: Final = "unix:///var/run/docker.sock"
_IMAGE: Final = f"apache/kafka:{KAFKA_VERSION}"
_SERVER: Final = "/etc/stream-fs/server.properties"
_DATA: Final = "/var/lib/kafka/data/stream-fs"
_RUN: Final = (
    "/opt/kafka/bin/kafka-storage.sh format --ignore-formatted --standalone"
    f" -t {CLUSTER_ID} -c {_SERVER}"
    f" && exec /opt/kafka/bin/kafka-server-start.sh {_SERVER}"
)
"""Replaces the set-up script of the image, which would add settings."""


def engine_missing() -> str | None:
    """Why no Docker engine answers; None if one does."""
    scheme, _, path = (get_docker_host() or _DEFAULT_ENGINE).partition("://")
    try:
        if scheme == "unix":  # a refused client would leave its socket open
            with socket.socket(socket.AF_UNIX) as engine:
                engine.connect(path)
        client = DockerClient(timeout=10).client
        client.ping()
        client.close()
    except (OSError, DockerException) as reason:
        return f"{scheme}://{path}: {reason}"
    return None


class ContainerBroker(Broker):
    """One Kafka node in a container; its data lives as long as the container."""

    def __init__(
        self, *, log_dir: Path, protocols: Mapping[str, str], properties: Mapping[str, str]
    ) -> None:
        """Configure the container without starting it.

        Every listener has the same port inside and outside, so that its address is the same for
        clients and for the broker itself, before and after a restart.
        """
        ports = dict(zip([*protocols, CONTROLLER], free_ports(len(protocols) + 1), strict=True))
        self._container = DockerContainer(_IMAGE, entrypoint=["sh", "-c"])
        host = self._container.get_docker_client().host()
        self._node = Node(id=1, host=host, bind="0.0.0.0", ports=ports, data=_DATA)  # noqa: S104  # within the container, reached through a port of this host
        self._log = log_dir / f"broker-{ports[PLAINTEXT]}.log"
        generated = server_properties(self._node, [self._node], protocols, properties)
        self._container.with_command([_RUN])
        self._container.with_env("KAFKA_HEAP_OPTS", "-Xmx512m")
        self._container.with_copy_into_container(render(generated).encode(), _SERVER)
        for listener in protocols:
            self._container.with_bind_ports(ports[listener], ports[listener])
        self._created = False

    def address(self, listener: str) -> str:
        """``host:port`` of a listener by its name."""
        return self._node.address(listener)

    def start(self) -> None:
        """Create the container if needed, start it, and wait until Kafka answers."""
        if self._running():
            return
        announced = self._output().count(STARTED)
        try:
            self._launch()
            await_start(
                self.bootstrap,
                announced=lambda: self._output().count(STARTED) > announced,
                running=self._running,
            )
        except (BrokerUnavailable, DockerException) as reason:
            raise BrokerUnavailable(
                f"{_IMAGE} did not start: {reason}; the end of its log:\n{self.log_tail()}"
            ) from reason

    def stop(self) -> None:
        """Shut Kafka down gracefully."""
        if self._running():
            self._container.get_wrapped_container().stop(timeout=30)

    def kill(self) -> None:
        """Kill the process of the container with SIGKILL."""
        if self._running():
            self._container.get_wrapped_container().kill()

    def remove(self) -> None:
        """Save the log, then remove the container and its data."""
        self._log.write_text(self._output(), encoding="utf-8")
        self._container.stop()

    def log_tail(self, lines: int = 40) -> str:
        """The last lines of Kafka's output."""
        return node.last_lines(self._output(), lines)

    def _launch(self) -> None:
        if self._created:
            self._container.get_wrapped_container().start()
        else:
            self._container.start()
            self._created = True

    def _running(self) -> bool:
        if not self._created:
            return False
        self._container.reload()
        return self._container.status == "running"

    def _output(self) -> str:
        if not self._created:
            return ""
        return b"".join(self._container.get_logs()).decode(errors="replace")
