"""The time of a start, and of a restart after a kill."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from functools import partial

from tests.benchmarks.measure import Comparison
from tests.benchmarks.service.input_topics import TIMEOUT, Source, Workspace
from tests.benchmarks.service.plan import Plan
from tests.benchmarks.service.reading import CHUNK
from tests.benchmarks.service.records import Mix
from tests.benchmarks.service.service_process import COMMITTED, ENVIRONMENT, ServiceProcess

SESSION = {"session.timeout.ms": 2000, "heartbeat.interval.ms": 500}
"""Time until the group expels a killed member; the default is 45 s."""
IMPORTS = "import stream_fs.cli.main, stream_fs.service.run"
BARE = """
import sys
from confluent_kafka import Consumer
consumer = Consumer({
    "bootstrap.servers": sys.argv[1], "group.id": sys.argv[2], "auto.offset.reset": "earliest",
    "partition.assignment.strategy": "cooperative-sticky", "enable.auto.commit": False,
    "session.timeout.ms": 2000, "heartbeat.interval.ms": 500,
})
consumer.subscribe([sys.argv[3]])
while consumer.poll(0.1) is None:
    pass
print("first message", flush=True)
sys.stdin.read()
"""
"""A consumer that joins, prints a line at its first message, and waits to be killed."""


def starting(workspace: Workspace, plan: Plan) -> Iterator[Comparison]:
    """Against the interpreter with the same imports, and against a bare consumer in a process."""
    with workspace.source(Mix.of_bytes(1_000), 40 * CHUNK) as source:
        taken = plan.turns_of(
            {
                "to its pages": partial(_pages, workspace, source),
                "imports": _imports,
                "to the first ranking": partial(_first_ranking, workspace, source),
                "bare consumer": partial(_bare, workspace, source, killed=False),
                "kill to ranking": partial(_after_kill, workspace, source),
                "bare, killed": partial(_bare, workspace, source, killed=True),
            },
        )
    for label, over, under, under_name in (
        ("start to pages, before the first poll", "to its pages", "imports", "its imports alone"),
        ("start to first ranking", "to the first ranking", "bare consumer", "a first message"),
        ("kill to first new ranking", "kill to ranking", "bare, killed", "a first message"),
    ):
        yield Comparison(
            "starting", label, _shape(label), "service", under_name, taken[over], taken[under]
        )


def _shape(label: str) -> str:
    if "ranking" in label:
        return f"a chunk of {CHUNK}, 1 kB; session timeout {SESSION['session.timeout.ms']} ms"
    return "new process"


def _pages(workspace: Workspace, source: Source) -> float:
    """Until it has checked its topics, joins the group and listens; the first poll is next."""
    with workspace.stream(source) as stream, ServiceProcess(stream) as process:
        return process.wait_for("listening", 1)[0] - process.began


def _first_ranking(workspace: Workspace, source: Source) -> float:
    settings = {"kafka.properties": SESSION}
    with workspace.stream(source, settings) as stream, ServiceProcess(stream) as process:
        return process.wait_for(COMMITTED, 1)[0] - process.began


def _after_kill(workspace: Workspace, source: Source) -> float:
    with workspace.stream(source, {"kafka.properties": SESSION}) as stream:
        with ServiceProcess(stream) as process:
            process.wait_for(COMMITTED, 1)
        killed = time.time()
        with ServiceProcess(stream) as process:
            return process.wait_for(COMMITTED, 1)[0] - killed


def _imports() -> float:
    begin = time.perf_counter()
    subprocess.run([sys.executable, "-c", IMPORTS], env=ENVIRONMENT, check=True)
    return time.perf_counter() - begin


def _bare(workspace: Workspace, source: Source, *, killed: bool) -> float:
    group = workspace.topics.unique("bare")
    if killed:
        _join_group(workspace, source, group)
    return _join_group(workspace, source, group)


def _join_group(workspace: Workspace, source: Source, group: str) -> float:
    """Seconds until a new member, alone in its group, has a message; it is killed then."""
    begin = time.perf_counter()
    process = subprocess.Popen(
        [sys.executable, "-c", BARE, workspace.bootstrap, group, source.topic],
        env=ENVIRONMENT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    with process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"first message\n"
            seconds = time.perf_counter() - begin
        finally:
            process.kill()
            process.wait(TIMEOUT)
    return seconds
