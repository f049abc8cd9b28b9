"""Which broker, and for how long."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NoReturn

from stream_fs.broker.guarded_process import guarded_directory
from stream_fs.broker.java import JavaBroker
from stream_fs.broker.node import PLAINTEXT, Broker, BrokerNotOurs, BrokerUnavailable, answers
from stream_fs.broker.toolchain import Toolchain


class ExternalBroker(Broker):
    """The broker at an address that was given from outside."""

    def __init__(self, bootstrap: str, source: str) -> None:
        """``source`` names where the address comes from, for messages."""
        self._bootstrap = bootstrap
        self._source = source

    def address(self, listener: str) -> str:
        """The address as it was given; other listeners are unknown here."""
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

    def log_tail(self, lines: int = 40) -> str:  # noqa: ARG002  # there is no log to take lines of
        """Empty: its log is elsewhere."""
        return ""

    def _refuse(self, what: str) -> NoReturn:
        raise BrokerNotOurs(
            f"the broker at {self._bootstrap} comes from {self._source}: {what}; "
            f"unset {self._source} to run a broker of one's own"
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
    """A broker that answers, gone without trace at the end.

    ``log_dir`` keeps the broker's log; without it the log goes with the broker. ``listeners`` asks
    for more listeners beside the plain one, name to security protocol (``{"SASL_SSL":
    "SASL_SSL"}``), each on a free port (`Broker.address`); ``properties`` are laid over the
    generated server.properties.

    Raises `BrokerUnavailable` when there is none to be had or it does not start, `BrokerNotOurs`
    when listeners or properties are wanted of a broker that somebody else runs.
    """
    if bootstrap := os.environ.get(BOOTSTRAP_VARIABLE):
        if listeners or properties:
            raise BrokerNotOurs(
                f"the broker at {bootstrap} comes from {BOOTSTRAP_VARIABLE}: listeners and "
                f"properties cannot be set; unset {BOOTSTRAP_VARIABLE} to run one's own"
            )
        yield _external(bootstrap)
        return
    protocols = {PLAINTEXT: PLAINTEXT, **(listeners or {})}
    with guarded_directory("stream-fs-broker-") as scratch:
        logs = log_dir or scratch
        logs.mkdir(parents=True, exist_ok=True)
        with _own(scratch, logs, protocols, properties or {}) as broker:
            yield broker


def _external(bootstrap: str) -> Broker:
    if not answers(bootstrap, _EXTERNAL_SECONDS):
        raise BrokerUnavailable(
            f"no broker answers at {bootstrap} ({BOOTSTRAP_VARIABLE}) within "
            f"{_EXTERNAL_SECONDS:.0f} s: start it, correct the address, or unset the variable"
        )
    return ExternalBroker(bootstrap, BOOTSTRAP_VARIABLE)


@contextmanager
def _own(
    scratch: Path, logs: Path, protocols: Mapping[str, str], properties: Mapping[str, str]
) -> Iterator[Broker]:
    """A started broker of the first kind that this machine can run."""
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
        wanted = [
            f"{BOOTSTRAP_VARIABLE}: not set; set it to host:port of a running broker, or",
            f"Docker: {no_docker}; or, for Apache Kafka as a process,",
            *no_java,
        ]
        raise BrokerUnavailable("\n  - ".join(["there is no Kafka broker to be had here", *wanted]))
    process = JavaBroker(
        tools, scratch=scratch, log_dir=logs, protocols=protocols, properties=properties
    )
    try:
        process.start()
        yield process
    finally:
        process.kill()


def _docker_missing() -> str | None:
    """None when Docker can be used, otherwise what is missing and how to get it."""
    if importlib.util.find_spec("testcontainers") is None:
        return "the Python package testcontainers is not installed; install it"
    from stream_fs.broker.container import engine_missing

    if (reason := engine_missing()) is not None:
        return f"no engine answers ({reason}); install Docker and start it"
    return None
