"""`stream-fs watch`: look at rankings as they are published."""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Final

from stream_fs.cli.arguments import (
    Arguments,
    Commands,
    above_zero,
    add_configuration,
    configuration,
    count,
)
from stream_fs.cli.ranking_display import Display, JsonLines, LiveTable, PlainLines
from stream_fs.errors import FatalError, InvalidMessage, StreamFsError
from stream_fs.kafka import RankingSubscriber, Topics
from stream_fs.records import Message
from stream_fs.service.configuration import Configuration
from stream_fs.service.exit_codes import ExitCode
from stream_fs.wire import Continuity, RankingMessage, decode_ranking, ranking_format

_WAIT_SECONDS: Final = 0.5
"""How long one look at the topic takes at most: so soon Ctrl-C is noticed."""


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "watch",
        help="look at rankings as they are published",
        description="Shows the newest rankings of the stream, and those that follow: a table on a "
        "terminal, a line for each ranking and view elsewhere. Where there is a ranking of the "
        "whole stream, that one; otherwise that of every partition. It is a subscriber like any "
        "other, and leaves no trace on the broker. Gaps in the sequence are told on standard "
        f"error. Ctrl-C ends it, with exit code 130; silence with {ExitCode.SILENCE.value}, see "
        "--timeout.",
    )
    add_configuration(parser)
    parser.add_argument(
        "--from-beginning", action="store_true", help="begin with the oldest that the topic holds"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="one ranking a line on standard output, as published (MessagePack as JSON)",
    )
    parser.add_argument(
        "--top", type=count, default=5, metavar="N", help="features shown of a view (default: 5)"
    )
    parser.add_argument(
        "--partitions",
        action="store_true",
        help="also the rankings of partitions that are merged; with --json they always are there",
    )
    parser.add_argument("--count", type=count, metavar="N", help="end after so many rankings")
    parser.add_argument(
        "--timeout",
        type=above_zero,
        metavar="SECONDS",
        help=f"end with exit code {ExitCode.SILENCE.value} when none came for so long",
    )
    parser.set_defaults(command=_watch)


def _watch(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    stream = loaded.stream.name
    subscriber, first = _subscribed(loaded, from_beginning=arguments.from_beginning)
    with contextlib.closing(subscriber), _display(arguments, loaded) as display:
        return _follow(subscriber, stream, first, display, arguments.count, arguments.timeout)


def _subscribed(
    loaded: Configuration, *, from_beginning: bool
) -> tuple[RankingSubscriber, list[Message]]:
    """A subscriber, and what it has found at once."""
    topic, settings = loaded.output.topic, loaded.kafka_settings()
    topics = Topics(settings)
    partitions = topics.partitions([topic])
    if topic not in partitions:
        raise StreamFsError(f"topic {topic} does not exist: make it with `stream-fs topics create`")
    subscriber = RankingSubscriber(settings, topic, partitions[topic])
    if from_beginning:
        subscriber.from_beginning()
        return subscriber, []
    keys = _keys(loaded, topics)
    found = subscriber.from_newest(keys)
    for key in sorted(keys - {message.key for message in found}):
        _tell(f"{key.decode()}: no ranking yet, or none for a long time")
    return subscriber, found


def _keys(loaded: Configuration, topics: Topics) -> set[bytes]:
    """The keys that rankings of this stream should have."""
    try:
        inputs = topics.partitions(loaded.stream.topics)
    except FatalError:  # a subscriber need not have the right to look at the input
        return set()
    keys = {
        f"{loaded.stream.name}/{topic}/{number}".encode()
        for topic, count in inputs.items()
        for number in range(count)
    }
    # The only partition's ranking is the stream's.
    merged = {loaded.stream.name.encode()} if loaded.merge.enabled and len(keys) > 1 else set()
    return keys | merged


@contextlib.contextmanager
def _display(arguments: Arguments, loaded: Configuration) -> Iterator[Display]:
    if arguments.json:
        yield JsonLines(sys.stdout.buffer)
    elif sys.stdout.isatty() and os.environ.get("TERM") != "dumb":
        title = f"{loaded.stream.name} (topic {loaded.output.topic})"
        partitions = arguments.partitions
        with LiveTable(title, arguments.top, partitions=partitions) as table:
            yield table
    else:
        yield PlainLines(sys.stdout, arguments.top, partitions=arguments.partitions)


def _follow(
    subscriber: RankingSubscriber,
    stream: str,
    first: list[Message],
    display: Display,
    most: int | None,
    timeout: float | None,
) -> ExitCode:
    continuity = Continuity()
    connection_error: str | None = None
    shown = 0
    heard = time.monotonic()
    found = _rankings(first, stream)
    found.sort(key=lambda pair: pair[1].scope != "merged")
    while True:
        for message, ranking in found:
            if (problem := continuity.follow(ranking)) is not None:
                _tell(problem)
            shown += display.show(message, ranking)
            if shown == most:
                return ExitCode.OK
        now = time.monotonic()
        heard = now if found else heard
        left = _WAIT_SECONDS if timeout is None else heard + timeout - now
        if left <= 0:
            return ExitCode.SILENCE
        found = _rankings(subscriber.poll(min(left, _WAIT_SECONDS)), stream)
        if (reason := subscriber.connection.error) is not None and connection_error is None:
            _tell(f"waiting for the broker: {reason}")
        connection_error = reason


def _rankings(messages: Iterable[Message], stream: str) -> list[tuple[Message, RankingMessage]]:
    """The rankings of the stream: others may publish to the same topic."""
    decoded = ((message, _decoded(message)) for message in messages)
    return [(m, ranking) for m, ranking in decoded if ranking and ranking.stream == stream]


def _decoded(message: Message) -> RankingMessage | None:
    """The ranking; what is none is told of, and passed over."""
    try:
        return decode_ranking(message.value or b"", ranking_format(message.headers))
    except InvalidMessage as error:
        _tell(f"{message.topic}/{message.partition} at offset {message.offset}: {error}")
        return None


def _tell(text: str) -> None:
    print(f"stream-fs: {text}", file=sys.stderr, flush=True)
