"""`stream-fs watch`: show rankings as they are published."""

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
"""Timeout of one poll, after which Ctrl-C is noticed."""


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "watch",
        help="show rankings as they are published",
        description="Shows the newest rankings of the stream and all that follow: as a table on a "
        "terminal, otherwise as one line per ranking and view. If the stream has a merged ranking, "
        "only that is shown, otherwise those of all partitions. Commits no offsets. Gaps in the "
        "sequence are reported on standard error. Ctrl-C ends it with exit code 130, a --timeout "
        f"with {ExitCode.SILENCE.value}.",
    )
    add_configuration(parser)
    parser.add_argument(
        "--from-beginning", action="store_true", help="start with the oldest ranking in the topic"
    )
    parser.add_argument(
        "--json",
        action="store_true",
        help="print rankings as published, one per line (MessagePack as JSON)",
    )
    parser.add_argument(
        "--top", type=count, default=5, metavar="N", help="features shown per view (default: 5)"
    )
    parser.add_argument(
        "--partitions",
        action="store_true",
        help="also show the rankings of single partitions; --json always includes them",
    )
    parser.add_argument("--count", type=count, metavar="N", help="exit after N rankings")
    parser.add_argument(
        "--timeout",
        type=above_zero,
        metavar="SECONDS",
        help=f"exit with code {ExitCode.SILENCE.value} if no ranking arrives within this time",
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
    """A subscriber, and the newest rankings in the topic."""
    topic, settings = loaded.output.topic, loaded.kafka_settings()
    topics = Topics(settings)
    partitions = topics.partitions([topic])
    if topic not in partitions:
        raise StreamFsError(
            f"topic {topic} does not exist; create it with `stream-fs topics create`"
        )
    subscriber = RankingSubscriber(settings, topic, partitions[topic])
    if from_beginning:
        subscriber.from_beginning()
        return subscriber, []
    keys = _keys(loaded, topics)
    found = subscriber.from_newest(keys)
    for key in sorted(keys - {message.key for message in found}):
        _report(f"{key.decode()}: no ranking yet, or none recently")
    return subscriber, found


def _keys(loaded: Configuration, topics: Topics) -> set[bytes]:
    """The keys that rankings of this stream should have."""
    try:
        inputs = topics.partitions(loaded.stream.topics)
    except FatalError:  # a subscriber need not be authorised to describe the input
        return set()
    keys = {
        f"{loaded.stream.name}/{topic}/{number}".encode()
        for topic, count in inputs.items()
        for number in range(count)
    }
    # A stream of one partition has no merged ranking.
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
    last_arrival = time.monotonic()
    found = _rankings(first, stream)
    found.sort(key=lambda pair: pair[1].scope != "merged")
    while True:
        for message, ranking in found:
            if (problem := continuity.follow(ranking)) is not None:
                _report(problem)
            shown += display.show(message, ranking)
            if shown == most:
                return ExitCode.OK
        now = time.monotonic()
        last_arrival = now if found else last_arrival
        left = _WAIT_SECONDS if timeout is None else last_arrival + timeout - now
        if left <= 0:
            return ExitCode.SILENCE
        found = _rankings(subscriber.poll(min(left, _WAIT_SECONDS)), stream)
        if (reason := subscriber.connection.error) is not None and connection_error is None:
            _report(f"waiting for the broker: {reason}")
        connection_error = reason


def _rankings(messages: Iterable[Message], stream: str) -> list[tuple[Message, RankingMessage]]:
    """The rankings of this stream; other streams may share the topic."""
    decoded = ((message, _decoded(message)) for message in messages)
    return [(m, ranking) for m, ranking in decoded if ranking and ranking.stream == stream]


def _decoded(message: Message) -> RankingMessage | None:
    """The ranking; a message that is none is reported and skipped."""
    try:
        return decode_ranking(message.value or b"", ranking_format(message.headers))
    except InvalidMessage as error:
        _report(f"{message.topic}/{message.partition} at offset {message.offset}: {error}")
        return None


def _report(text: str) -> None:
    print(f"stream-fs: {text}", file=sys.stderr, flush=True)
