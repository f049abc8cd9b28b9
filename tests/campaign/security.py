"""Who is not let in is told why and learns nothing; and the HTTP port under attack.

The broker asks for TLS and a password, and checks rights; the cases are those of the tests in
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
from tests.campaign.fault_result import Account, AddArgument
from tests.hostile.http_clients import (
    MARKER,
    Port,
    Siege,
    only_its_paths,
    raw_requests,
    stays_alive,
)
from tests.integration.secured import test_secured as cases
from tests.integration.secured.guarded import Guarded, guarded_broker
from tests.integration.service.services import Service
from tests.integration.service.stream import Stream
from tests.support.topics import Topics

Check = Callable[[], None]
Case = tuple[str, dict[str, str], str, list[str]]
TOPICS = ("open", "open.state", "open.rankings", "open.dead-letters")
MOST_THREADS = 60
"""Of the whole process: those of the HTTP server, of the Kafka clients and its own."""


def run(options: Namespace) -> Iterator[Account]:
    """The rows of a guarded broker, then those of the HTTP port."""
    with tempfile.TemporaryDirectory(prefix="stream-fs-security-") as folder:
        yield from _guarded(Path(folder))
        yield from _http(Path(folder), options)


def _guarded(folder: Path) -> Iterator[Account]:
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(BOOTSTRAP_VARIABLE, raising=False)
        with guarded_broker(_made(folder / "guarded")) as guarded:
            for name, case in cases.REFUSED.items():
                shown = "exit code 4, the reason, no secret"
                yield _case(f"TLS and SCRAM: wrong {name}", shown, _refused(guarded, folder, case))
            for topic in TOPICS:
                shown = "exit code 4, the topic and the right, no secret"
                place = _made(folder / topic)
                told = _without_rights(guarded, place, topic)
                yield _case(f"no rights on {topic}", shown, told)


def _refused(
    guarded: Guarded, folder: Path, case: tuple[str, dict[str, str], str, list[str]]
) -> Check:
    place = Path(tempfile.mkdtemp(dir=folder))
    return lambda: cases.test_who_is_not_let_in_is_told_why(guarded, place, *case)


def _without_rights(guarded: Guarded, place: Path, topic: str) -> Check:
    return lambda: cases.test_a_topic_without_rights_is_named(guarded, place, topic)


def _case(name: str, shown: str, check: Check) -> Account:
    """A row of what a test of ours says about a case."""
    try:
        check()
    except (AssertionError, TimeoutError, subprocess.SubprocessError) as error:
        return Account(name, 1, shown="not as it should be", problems=(str(error)[:2000],))
    return Account(name, 1, shown=shown)


def _http(folder: Path, options: Namespace) -> Iterator[Account]:
    with running_broker(log_dir=_made(folder / "open-broker")) as broker:
        topics = Topics(broker.bootstrap)
        stream = Stream(topics, _made(folder / "http"))
        service = Service(stream.file({"log.level": "debug"}))
        try:
            service.comes_to(service.ready, "it is not ready")
            yield from attacked(service, options)
            service.terminate()
        finally:
            service.kill()
            stream.remove()
            topics.remove()


def attacked(service: Service, options: Namespace) -> Iterator[Account]:
    """The HTTP port of a service that runs."""
    place = urlsplit(service.address)
    port = Port(place.hostname or "", place.port or 0)
    problems = list(only_its_paths(port))
    yield Account("HTTP: paths and methods", 1, shown="404 and 405", problems=tuple(problems))
    problems = list(raw_requests(port, options.seed, options.requests))
    if MARKER.decode() in service.said:
        problems.append("a request is in the log")
    shown = "nothing repeated, in answers or in the log; every answer with its headers"
    yield Account("HTTP: hostile requests", options.requests, shown=shown, problems=tuple(problems))
    with Siege(port, options.besiegers) as siege:
        problems = list(stays_alive(port, options.probes))
        threads = len(os.listdir(f"/proc/{service.pid}/task"))  # noqa: PTH208  # of the system
    if threads > MOST_THREADS:
        problems.append(f"{threads} threads")
    problems += [] if service.ready() else ["it was not ready afterwards"]
    shown = (
        f"{options.probes} probes of /healthz, {siege.connections} connections, {threads} threads"
    )
    yield Account("HTTP: siege", options.besiegers, shown=shown, problems=tuple(problems))


def _made(folder: Path) -> Path:
    folder.mkdir()
    return folder


def arguments(add: AddArgument) -> None:
    add("--requests", type=int, default=5_000, help="hostile requests to the HTTP port")
    add("--besiegers", type=int, default=100, help="clients that hold connections")
    add("--probes", type=int, default=300, help="questions for /healthz meanwhile")
