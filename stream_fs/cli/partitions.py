"""Which partitions a command is about, where their state is kept, and whether the user is sure."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from stream_fs.cli.arguments import Arguments
from stream_fs.cli.files import whole
from stream_fs.errors import InvalidConfiguration
from stream_fs.kafka import KafkaTransport, Topics
from stream_fs.pipeline.ports import Partition, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.replay.journal import Journal
from stream_fs.replay.run import replay_settings
from stream_fs.replay.transport import FileTransport
from stream_fs.service.configuration import Configuration


def add_place(parser: argparse.ArgumentParser) -> None:
    """The flags that `partitions` reads."""
    parser.add_argument("--topic", help="only this input topic (default: all of the stream)")
    parser.add_argument("--partition", type=whole, metavar="N", help="only this partition")
    parser.add_argument(
        "--replay",
        metavar="FILE",
        type=Path,
        help="the checkpoint of `stream-fs replay`, in the place of the broker",
    )


class Selected(NamedTuple):
    """The partitions of a command, the transport to their state, and the settings."""

    transport: Transport
    settings: StreamSettings
    partitions: list[Partition]

    @property
    def only(self) -> Partition:
        """The partition of a command that takes exactly one."""
        if len(self.partitions) > 1:
            raise InvalidConfiguration(
                [f"--topic, --partition: name one partition, not {len(self.partitions)} of them"]
            )
        return self.partitions[0]


@contextmanager
def selected(
    arguments: Arguments, loaded: Configuration, *, writing: bool = False, making: bool = False
) -> Iterator[Selected]:
    """The partitions that the arguments name, which must exist.

    `making` allows a checkpoint of a replay that does not exist yet.
    """
    settings = loaded.stream_settings()
    if arguments.replay is None:
        yield Selected(kafka_transport(loaded), settings, _on_broker(arguments, loaded))
        return
    path: Path = arguments.replay
    place = Partition(loaded.stream.topics[0], 0)
    if arguments.topic not in (None, place.topic) or arguments.partition not in (None, 0):
        raise InvalidConfiguration([f"--replay: has one partition, {place.flags}"])
    if not making and not path.exists():
        raise InvalidConfiguration([f"--replay: there is no checkpoint {path}"])
    journal = Journal(path, writing=writing)
    try:
        transport = FileTransport(place, settings.state_topics[place.topic], journal)
        yield Selected(transport, replay_settings(settings), [place])
    finally:
        journal.close()


def kafka_transport(loaded: Configuration) -> KafkaTransport:
    """The transport to the broker of a configuration."""
    states = loaded.state_topics()
    return KafkaTransport(loaded.kafka_settings(), loaded.stream.name, states.__getitem__)


def _on_broker(arguments: Arguments, loaded: Configuration) -> list[Partition]:
    existing = Topics(loaded.kafka_settings()).partitions(loaded.stream.topics)
    found = [
        Partition(topic, number)
        for topic, count in existing.items()
        for number in range(count)
        if arguments.topic in (None, topic) and arguments.partition in (None, number)
    ]
    if not found:
        known = ", ".join(f"{topic} ({count})" for topic, count in existing.items()) or "none"
        raise InvalidConfiguration(
            [f"--topic, --partition: name an input partition; topics and partitions are {known}"]
        )
    return found


def agreed(arguments: Arguments, question: str) -> bool:
    """Whether the user is sure: `--yes`, or an answer where there is somebody to ask."""
    if arguments.yes:
        return True
    if not sys.stdin.isatty():
        raise InvalidConfiguration(["--yes: is missing, and there is nobody to ask"])
    try:
        answer = input(f"{question} [y/N] ")
    except EOFError:  # Ctrl-D
        print()
        answer = ""
    if answer.strip().lower() in ("y", "yes"):
        return True
    print("nothing was changed")
    return False
