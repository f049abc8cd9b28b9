"""Refused clients get the reason and no secret; and hostile requests to the HTTP port.

The broker requires TLS and a password, and checks ACLs; the cases are those of the tests in
`tests/integration/secured`.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from argparse import Namespace
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from stream_fs.broker import BOOTSTRAP_VARIABLE, running_broker
from tests.campaign.fault_result import AddArgument, FaultResult
from tests.hostile.http_clients import (
    MARKER,
    Port,
    Siege,
    only_its_paths,
    raw_requests,
    stays_alive,
)
from tests.integration.secured import checks
from tests.integration.secured.guarded import Guarded, guarded_broker
from tests.integration.service.services import Service
from tests.integration.service.stream import Stream
from tests.support.topics import Topics

Check = Callable[[], None]
Case = tuple[str, dict[str, str], str, list[str]]
TOPICS = ("open", "open.state", "open.rankings", "open.dead-letters")
MOST_THREADS = 60
"""Threads of the whole process: of the HTTP server, of the Kafka clients and its own."""


def run(options: Namespace) -> Iterator[FaultResult]:
    """The results of a secured broker, then those of the HTTP port."""
    with tempfile.TemporaryDirectory(prefix="stream-fs-security-") as folder:
        yield from _guarded(Path(folder))
        yield from _http(Path(folder), options)


def _guarded(folder: Path) -> Iterator[FaultResult]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(BOOTSTRAP_VARIABLE, raising=False)
        with guarded_broker(_make_folder(folder / "guarded")) as guarded:
            for name, case in checks.REFUSED.items():
                shown = "exit code 4, the reason, no secret"
                yield _case(f"TLS and SCRAM: wrong {name}", shown, _refused(guarded, folder, case))
            for topic in TOPICS:
                shown = "exit code 4, the topic and the right, no secret"
                place = _make_folder(folder / topic)
                check = _without_rights(guarded, place, topic)
                yield _case(f"no rights on {topic}", shown, check)


def _refused(
    guarded: Guarded, folder: Path, case: tuple[str, dict[str, str], str, list[str]]
) -> Check:
    place = Path(tempfile.mkdtemp(dir=folder))
    return lambda: checks.check_refused(guarded, place, *case)


def _without_rights(guarded: Guarded, place: Path, topic: str) -> Check:
    return lambda: checks.check_denied_topic(guarded, place, topic)


def _case(name: str, shown: str, check: Check) -> FaultResult:
    """The result of a test case."""
    try:
        check()
    except (AssertionError, TimeoutError, subprocess.SubprocessError) as error:
        return FaultResult(name, 1, shown="failed", problems=(str(error)[:2000],))
    return FaultResult(name, 1, shown=shown)


def _http(folder: Path, options: Namespace) -> Iterator[FaultResult]:
    with running_broker(log_dir=_make_folder(folder / "open-broker")) as broker:
        topics = Topics(broker.bootstrap)
        stream = Stream(topics, _make_folder(folder / "http"))
        service = Service(stream.file({"log.level": "debug"}))
        try:
            service.wait_for(service.ready, "it is not ready")
            yield from attack_http(service, options)
            service.terminate()
        finally:
            service.kill()
            stream.remove()
            topics.remove()


def attack_http(service: Service, options: Namespace) -> Iterator[FaultResult]:
    """Hostile requests to the HTTP port of a running service."""
    place = urlsplit(service.address)
    port = Port(place.hostname or "", place.port or 0)
    problems = list(only_its_paths(port))
    yield FaultResult("HTTP: paths and methods", 1, shown="404 and 405", problems=tuple(problems))
    problems = list(raw_requests(port, options.seed, options.requests))
    if MARKER.decode() in service.output:
        problems.append("a request is in the log")
    shown = "no request is in an answer or in the log; every answer has its headers"
    yield FaultResult(
        "HTTP: hostile requests", options.requests, shown=shown, problems=tuple(problems)
    )
    with Siege(port, options.connections) as held:
        problems = list(stays_alive(port, options.probes))
        threads = len(os.listdir(f"/proc/{service.pid}/task"))  # noqa: PTH208  # of the system
    if threads > MOST_THREADS:
        problems.append(f"{threads} threads")
    problems += [] if service.ready() else ["it was not ready afterwards"]
    shown = (
        f"{options.probes} probes of /healthz, {held.connections} connections, {threads} threads"
    )
    yield FaultResult(
        "HTTP: many open connections", options.connections, shown=shown, problems=tuple(problems)
    )


def _make_folder(folder: Path) -> Path:
    folder.mkdir()
    return folder


def arguments(add: AddArgument) -> None:
    add("--requests", type=int, default=5_000, help="hostile requests to the HTTP port")
    add("--connections", type=int, default=100, help="clients that hold connections")
    add("--probes", type=int, default=300, help="requests for /healthz meanwhile")
