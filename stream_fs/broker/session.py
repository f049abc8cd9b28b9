"""Finding or starting a broker, for the duration of a context."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from stream_fs.broker.guarded_process import guarded_directory
from stream_fs.broker.java import JavaBroker
from stream_fs.broker.node import PLAINTEXT, Broker, BrokerNotOwned, BrokerUnavailable, answers
from stream_fs.broker.toolchain import Toolchain


class ExternalBroker(Broker):
    """An existing broker at a given address."""

    def __init__(self, bootstrap: str, source: str) -> None:
        """``source`` names the origin of the address, for messages."""
        self._bootstrap = bootstrap
        self._source = source

    def address(self, listener: str) -> str:
        """The given address; those of other listeners are unknown."""
        if listener != PLAINTEXT:
            self._refuse(f"the address of its listener {listener} is not known")
        return self._bootstrap

    def start(self) -> None:
        """Refused."""
        self._refuse("it cannot be started here")

    def stop(self) -> None:
        """Refused."""
        self._refuse("it cannot be stopped here")

    def kill(self) -> None:
        """Refused."""
        self._refuse("it cannot be killed here")

    def log_tail(self, lines: int = 40) -> str:  # noqa: ARG002  # the log is not available
        """Empty: the log is not available."""
        return ""

    def _refuse(self, what: str) -> NoReturn:
        raise BrokerNotOwned(
            f"the broker at {self._bootstrap} is given by {self._source}: {what}; "
            f"unset {self._source} to start another broker"
        )


BOOTSTRAP_VARIABLE: Final = "STREAM_FS_BOOTSTRAP"

_EXTERNAL_SECONDS: Final = 15.0


@contextmanager
def running_broker(
    *,
    log_dir: Path | None = None,
    listeners: Mapping[str, str] | None = None,
    properties: Mapping[str, str] | None = None,
) -> Iterator[Broker]:
    """A running broker, which is removed at the end if it was started here.

    The log of the broker is kept in ``log_dir``, if given. ``listeners`` are further listeners
    beside the plain one, name to security protocol (``{"SASL_SSL": "SASL_SSL"}``), each on a free
    port (`Broker.address`); ``properties`` override the generated server.properties.

    Raises `BrokerUnavailable` when there is none or it does not start, and `BrokerNotOwned` for
    listeners or properties of an existing broker.
    """
    if bootstrap := os.environ.get(BOOTSTRAP_VARIABLE):
        if listeners or properties:
            raise BrokerNotOwned(
                f"the broker at {bootstrap} is given by {BOOTSTRAP_VARIABLE}: listeners and "
                f"properties cannot be set; unset {BOOTSTRAP_VARIABLE} to start another broker"
            )
        yield _existing_broker(bootstrap)
        return
    protocols = {PLAINTEXT: PLAINTEXT, **(listeners or {})}
    with guarded_directory("stream-fs-broker-") as scratch:
        logs = log_dir or scratch
        logs.mkdir(parents=True, exist_ok=True)
        with _started_broker(scratch, logs, protocols, properties or {}) as broker:
            yield broker


def _existing_broker(bootstrap: str) -> Broker:
    if not answers(bootstrap, _EXTERNAL_SECONDS):
        raise BrokerUnavailable(
            f"no broker answers at {bootstrap} ({BOOTSTRAP_VARIABLE}) within "
            f"{_EXTERNAL_SECONDS:.0f} s: start it, correct the address, or unset the variable"
        )
    return ExternalBroker(bootstrap, BOOTSTRAP_VARIABLE)


@contextmanager
def _started_broker(
    scratch: Path, logs: Path, protocols: Mapping[str, str], properties: Mapping[str, str]
) -> Iterator[Broker]:
    """A new broker of the first kind that this machine can run."""
    no_docker = _docker_missing()
    if no_docker is None:
        from stream_fs.broker.container import ContainerBroker

        container = ContainerBroker(log_dir=logs, protocols=protocols, properties=properties)
        try:
            container.start()
            yield container
        finally:
            container.remove()
        return
    tools = Toolchain.found(os.environ)
    if no_java := tools.missing():
        options = [
            f"{BOOTSTRAP_VARIABLE}: not set; set it to host:port of a running broker, or",
            f"Docker: {no_docker}; or, for Apache Kafka as a process,",
            *no_java,
        ]
        raise BrokerUnavailable(
            "\n  - ".join(["there is no Kafka broker, and none can be started", *options])
        )
    process = JavaBroker(
        tools, scratch=scratch, log_dir=logs, protocols=protocols, properties=properties
    )
    try:
        process.start()
        yield process
    finally:
        process.kill()


def _docker_missing() -> str | None:
    """What is missing for Docker and how to get it; None if nothing is."""
    if importlib.util.find_spec("testcontainers") is None:
        return "the Python package testcontainers is not installed; install it"
    from stream_fs.broker.container import engine_missing

    if (reason := engine_missing()) is not None:
        return f"no engine answers ({reason}); install Docker and start it"
    return None
