"""The demo: broker, service, stream, summary."""

from __future__ import annotations

import os
import secrets
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

from rich.console import Console

from stream_fs.broker import BrokerUnavailable, running_broker
from stream_fs.broker.guarded_process import guarded_directory
from stream_fs.broker.node import free_ports, is_free
from stream_fs.broker.session import ExternalBroker
from stream_fs.demo.dataset import NAME, DemoStream, prepare
from stream_fs.demo.display import TIMEOUT, DemoDisplay, TimedRanking, follow_rankings
from stream_fs.demo.subprocesses import (
    BackgroundCommand,
    CommandRunner,
    DemoError,
    without_configuration,
)
from stream_fs.demo.summary import describe, summary
from stream_fs.errors import StreamFsError
from stream_fs.kafka import Topics
from stream_fs.service.configuration import load
from stream_fs.service.topics import topic_specs

RATE: Final = 400
"""Records per second of the first pass, slow enough to watch."""
REPEATS: Final = 1
"""Passes at full speed after the first one."""
_DEFAULT_PORT: Final = 9108
"""Port of the service if it is free."""


@dataclass(frozen=True)
class DemoSession:
    """What all steps of the demo use."""

    console: Console
    commands: CommandRunner
    stream: DemoStream

    def say(self, text: str) -> None:
        """Print to the user."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def run_demo(console: Console, *, keep: bool) -> None:
    """Run the demo; with `keep`, until it is interrupted."""
    with ExitStack() as stack:
        directory = stack.enter_context(guarded_directory("stream-fs-demo-"))
        console.print("looking for a Kafka broker, or starting one …", style="dim")
        try:
            broker = stack.enter_context(running_broker())
        except BrokerUnavailable as unavailable:
            session = _session(console, directory, "localhost:9092", NAME)
            session.say(f"{unavailable}\n\nThe same pipeline runs without a broker (replay).\n")
            _without_broker(session)
            if keep:
                session.say("\nthe replay has ended: without a broker nothing can be kept running")
            return
        console.print(f"a broker answers at {broker.bootstrap}", style="dim", highlight=False)
        if isinstance(broker, ExternalBroker):
            # The stream has a name of its own there, and its topics are deleted at the end.
            session = _session(console, directory, broker.bootstrap, f"demo-{secrets.token_hex(4)}")
            stack.enter_context(_cleanup(session))
        else:
            session = _session(console, directory, broker.bootstrap, NAME)
        _with_broker(session, keep=keep)


def _session(console: Console, directory: Path, bootstrap: str, name: str) -> DemoSession:
    port = _DEFAULT_PORT if is_free(_DEFAULT_PORT) else free_ports(1)[0]
    stream = prepare(directory, name, bootstrap, port)
    return DemoSession(
        console, CommandRunner(console, directory, without_configuration(os.environ)), stream
    )


def _with_broker(session: DemoSession, *, keep: bool) -> None:
    stream, commands = session.stream, session.commands
    config = ("--config", str(stream.config))
    session.say(describe(stream, passes=1 + REPEATS))
    commands.run("topics", "create", *config, "--partitions", "1")
    with ExitStack() as stack:
        service = stack.enter_context(commands.background("run", *config, graceful=True))
        _wait_ready(session, service)
        session.say(f"\nstatus page: {stream.address}/\n")
        watch = stack.enter_context(
            commands.background("watch", *config, "--json", "--from-beginning")
        )
        produce = ("produce", *config, str(stream.data))
        running = [service, watch]
        running.append(stack.enter_context(commands.background(*produce, "--rate", str(RATE))))
        rankings: list[TimedRanking] = []
        display = DemoDisplay(session.console, stream, passes=1 + REPEATS)
        with display.live():
            last = stream.chunks(1 + REPEATS)
            for timed in follow_rankings(watch.output, last, lambda: running, time.monotonic):
                rankings.append(timed)
                display.show(timed.ranking)
                if timed.ranking.sequence == stream.chunks(1):
                    repeat = (*produce, "--repeat", str(REPEATS))
                    running.append(stack.enter_context(commands.background(*repeat, quiet=True)))
        # The first ranking of the second pass may have waited for its records.
        _print_summary(session, rankings, rankings[stream.chunks(1) + 1 :])
        if keep:
            _keep_running(session, service, produce)
        session.say("\nstopping the service …")
        if (status := service.stop()) != 0:
            raise DemoError(f"the service ended with {status} on SIGTERM")


def _without_broker(session: DemoSession) -> None:
    stream = session.stream
    path = session.commands.directory / "rankings.jsonl"
    arguments = ("--config", str(stream.config), "--rankings", str(path), str(stream.data))
    rankings: list[TimedRanking] = []
    session.say(describe(stream, passes=1))
    display = DemoDisplay(session.console, stream, passes=1)
    with session.commands.background("replay", *arguments) as replay, display.live():
        for timed in follow_rankings(path, stream.chunks(1), lambda: [replay], time.monotonic):
            rankings.append(timed)
            display.show(timed.ranking)
    _print_summary(session, rankings, rankings)


def _print_summary(
    session: DemoSession, rankings: list[TimedRanking], burst: list[TimedRanking]
) -> None:
    session.console.print("\nclustering the digits to measure the selected features …", style="dim")
    session.say(summary(session.stream, rankings, burst))


def _wait_ready(session: DemoSession, service: BackgroundCommand) -> None:
    """Wait until /readyz reports that the service is ready."""
    limit = time.monotonic() + TIMEOUT
    while time.monotonic() < limit:
        service.check()
        try:
            address = f"{session.stream.address}/readyz"
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310  # http
                if answer.status == HTTPStatus.OK:
                    return
        except (urllib.error.URLError, TimeoutError):
            pass  # not yet
        time.sleep(0.1)
    raise DemoError(f"the service is not ready after {TIMEOUT:.0f} s")


def _keep_running(
    session: DemoSession, service: BackgroundCommand, produce: tuple[str, ...]
) -> None:
    """Continue the stream until Ctrl-C."""
    session.say(f"\nstill running: {session.stream.address}/ (Ctrl-C ends it)")
    try:
        while True:
            with session.commands.background(*produce, "--rate", str(RATE), quiet=True) as repeat:
                while repeat.command.running():
                    service.check()
                    time.sleep(0.5)
                repeat.check()
    except KeyboardInterrupt:
        session.say("")


@contextmanager
def _cleanup(session: DemoSession) -> Iterator[None]:
    """A context at whose end the topics and the consumer group of the demo are deleted."""
    try:
        yield
    finally:
        configuration = load(session.stream.config, {}, [])
        topics = Topics(configuration.kafka_settings())
        topics.delete([spec.name for spec in topic_specs(configuration, topics)])
        try:
            topics.delete_group(configuration.kafka.group)
        except StreamFsError as error:
            # A service that was killed has not left the group.
            session.say(f"{error}; the broker will delete the group, which has no more topics")
