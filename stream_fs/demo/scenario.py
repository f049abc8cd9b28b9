"""The demo from beginning to end."""

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
"""Records in a second at first, slow enough to look at."""
BURST: Final = 1
"""How often the stream comes again afterwards, as fast as it can."""
_PORT: Final = 9108
"""Of the service, unless somebody else listens there; as by default."""


@dataclass(frozen=True)
class Stage:
    """Where the demo takes place."""

    console: Console
    commands: CommandRunner
    stream: DemoStream

    def say(self, text: str) -> None:
        """Tell the user."""
        self.console.print(text, highlight=False, markup=False, soft_wrap=True)


def run_demo(console: Console, *, keep: bool) -> None:
    """Run the demo; with `keep`, until it is interrupted."""
    with ExitStack() as stack:
        directory = stack.enter_context(guarded_directory("stream-fs-demo-"))
        console.print("looking for a Kafka broker, or starting one …", style="dim")
        try:
            broker = stack.enter_context(running_broker())
        except BrokerUnavailable as unavailable:
            stage = _stage(console, directory, "localhost:9092", NAME)
            stage.say(f"{unavailable}\n\nSo this is the same pipeline without a broker (replay).\n")
            _without_broker(stage)
            if keep:
                stage.say("\nthe replay has ended: without a broker nothing can be kept running")
            return
        console.print(f"a broker answers at {broker.bootstrap}", style="dim", highlight=False)
        if isinstance(broker, ExternalBroker):
            # Nothing of theirs is touched, and nothing of ours stays.
            stage = _stage(console, directory, broker.bootstrap, f"demo-{secrets.token_hex(4)}")
            stack.enter_context(_cleared_away(stage))
        else:
            stage = _stage(console, directory, broker.bootstrap, NAME)
        _with_broker(stage, keep=keep)


def _stage(console: Console, directory: Path, bootstrap: str, name: str) -> Stage:
    port = _PORT if is_free(_PORT) else free_ports(1)[0]
    stream = prepare(directory, name, bootstrap, port)
    return Stage(
        console, CommandRunner(console, directory, without_configuration(os.environ)), stream
    )


def _with_broker(stage: Stage, *, keep: bool) -> None:
    stream, commands = stage.stream, stage.commands
    config = ("--config", str(stream.config))
    stage.say(describe(stream, passes=1 + BURST))
    commands.run("topics", "create", *config, "--partitions", "1")
    with ExitStack() as stack:
        service = stack.enter_context(commands.background("run", *config, orderly=True))
        _wait_ready(stage, service)
        stage.say(f"\nstatus page: {stream.address}/\n")
        watch = stack.enter_context(
            commands.background("watch", *config, "--json", "--from-beginning")
        )
        produce = ("produce", *config, str(stream.data))
        parts = [service, watch]
        parts.append(stack.enter_context(commands.background(*produce, "--rate", str(RATE))))
        seen: list[TimedRanking] = []
        screen = DemoDisplay(stage.console, stream, passes=1 + BURST)
        with screen.live():
            last = stream.chunks(1 + BURST)
            for one in follow_rankings(watch.output, last, lambda: parts, time.monotonic):
                seen.append(one)
                screen.show(one.ranking)
                if one.ranking.sequence == stream.chunks(1):
                    again = (*produce, "--repeat", str(BURST))
                    parts.append(stack.enter_context(commands.background(*again, quiet=True)))
        # The first ranking of the burst may have waited for it.
        _sum_up(stage, seen, seen[stream.chunks(1) + 1 :])
        if keep:
            _keep(stage, service, produce)
        stage.say("\nstopping the service …")
        if (status := service.stop()) != 0:
            raise DemoError(f"the service ended with {status} on SIGTERM")


def _without_broker(stage: Stage) -> None:
    stream = stage.stream
    rankings = stage.commands.directory / "rankings.jsonl"
    arguments = ("--config", str(stream.config), "--rankings", str(rankings), str(stream.data))
    seen: list[TimedRanking] = []
    stage.say(describe(stream, passes=1))
    screen = DemoDisplay(stage.console, stream, passes=1)
    with stage.commands.background("replay", *arguments) as replay, screen.live():
        for one in follow_rankings(rankings, stream.chunks(1), lambda: [replay], time.monotonic):
            seen.append(one)
            screen.show(one.ranking)
    _sum_up(stage, seen, seen)


def _sum_up(stage: Stage, seen: list[TimedRanking], fast: list[TimedRanking]) -> None:
    stage.console.print(
        "\nclustering the digits, to see what the features are worth …", style="dim"
    )
    stage.say(summary(stage.stream, seen, fast))


def _wait_ready(stage: Stage, service: BackgroundCommand) -> None:
    """Until /readyz says so."""
    limit = time.monotonic() + TIMEOUT
    while time.monotonic() < limit:
        service.check()
        try:
            address = f"{stage.stream.address}/readyz"
            with urllib.request.urlopen(address, timeout=5) as answer:  # noqa: S310  # our own
                if answer.status == HTTPStatus.OK:
                    return
        except (urllib.error.URLError, TimeoutError):
            pass  # not yet
        time.sleep(0.1)
    raise DemoError(f"the service is not ready after {TIMEOUT:.0f} s")


def _keep(stage: Stage, service: BackgroundCommand, produce: tuple[str, ...]) -> None:
    """Go on with the stream until somebody has seen enough."""
    stage.say(f"\nstill running: {stage.stream.address}/ (Ctrl-C ends it)")
    try:
        while True:
            with stage.commands.background(*produce, "--rate", str(RATE), quiet=True) as again:
                while again.command.running():
                    service.check()
                    time.sleep(0.5)
                again.check()
    except KeyboardInterrupt:
        stage.say("")


@contextmanager
def _cleared_away(stage: Stage) -> Iterator[None]:
    """At the end, take away the topics and the consumer group that the demo has made."""
    try:
        yield
    finally:
        configuration = load(stage.stream.config, {}, [])
        topics = Topics(configuration.kafka_settings())
        topics.delete([plan.name for plan in topic_specs(configuration, topics)])
        try:
            topics.delete_group(configuration.kafka.group)
        except StreamFsError as error:
            # A service that was killed has not left it.
            stage.say(f"{error}; a group without topics is forgotten by the broker in time")
