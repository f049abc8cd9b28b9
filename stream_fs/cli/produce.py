"""`stream-fs produce`: a file of records into an input topic."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from itertools import islice

from rich.progress import Progress, TaskID

from stream_fs.cli.arguments import (
    Arguments,
    Commands,
    above_zero,
    add_configuration,
    add_format,
    add_timestamps,
    configuration,
    count,
    progress,
    share,
    timestamps,
    whole,
)
from stream_fs.cli.interrupts import interrupts
from stream_fs.errors import InvalidConfiguration
from stream_fs.kafka import RateLimit, RecordProducer, Topics
from stream_fs.replay import Rewriter, Source, file_format
from stream_fs.service.configuration import Configuration
from stream_fs.service.exit_codes import ExitCode

_SHOWN_EVERY = 64
"""Records between two looks at the bar."""


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "produce",
        help="produce a file of records to an input topic",
        description="Produces a file of records to an input topic, each once and in its order, in "
        "the format that the stream declares (stream.format). Records that are in it already are "
        "sent as they are, good or bad.",
    )
    parser.add_argument("file", metavar="FILE", help="the file, or - for standard input")
    add_configuration(parser)
    add_format(parser)
    parser.add_argument("--topic", help="the topic (default: the first input topic)")
    parser.add_argument(
        "--partition", type=whole, metavar="N", help="into this partition (default: all in turn)"
    )
    parser.add_argument(
        "--rate", type=above_zero, metavar="R", help="records in a second, on average"
    )
    parser.add_argument(
        "--missing",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="leave out each view of each record with this probability; one is always kept",
    )
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="of --missing (default: 0)"
    )
    parser.add_argument("--limit", type=count, metavar="N", help="no more than so many records")
    parser.add_argument(
        "--repeat", type=count, default=1, metavar="N", help="the file so many times (default: 1)"
    )
    add_timestamps(parser, "now")
    parser.set_defaults(command=_produce)


def _produce(arguments: Arguments) -> ExitCode:
    loaded = configuration(arguments)
    topic: str = arguments.topic or loaded.stream.topics[0]
    settings = loaded.stream_settings()
    kind = file_format(arguments.file, arguments.format)
    source = Source(arguments.file, kind, settings.views, settings.record_format)
    if source.size is None and arguments.repeat > 1:
        raise InvalidConfiguration([f"--repeat: {arguments.file} can be read only once"])
    rewrite = Rewriter(
        settings.views,
        source.format,
        settings.record_format,
        missing=arguments.missing,
        seed=arguments.seed,
    )
    allowed = _check_place(loaded, topic, arguments.partition)
    with interrupts() as check:
        feeder = RecordProducer(
            loaded.kafka_settings(),
            topic,
            arguments.partition,
            RateLimit(arguments.rate, time.monotonic),
            check,
            allowed,
        )
        _feed(feeder, source, rewrite, topic, arguments)
    return ExitCode.OK


def _feed(
    feeder: RecordProducer, source: Source, rewrite: Rewriter, topic: str, arguments: Arguments
) -> None:
    """Send everything, and tell what has arrived, however it ends."""
    stamps = timestamps(arguments)
    began = time.monotonic()
    try:
        with progress() as bar:
            shown = _Bar(bar, source, arguments.repeat, arguments.limit)
            try:
                for number, value in enumerate(islice(_all(source, arguments), arguments.limit)):
                    stamp = None if stamps is None else stamps.of(number)
                    feeder.send(rewrite(value), stamp)
                    if number % _SHOWN_EVERY == 0:
                        shown.at(number)
            finally:
                # Also when interrupted: what was handed over is not lost without a word.
                feeder.finish()
    finally:
        feeder.close()
        seconds = max(time.monotonic() - began, 1e-9)
        _tell(
            f"produced {feeder.delivered} records to {topic} in {seconds:.1f} s "
            f"({feeder.delivered / seconds:.0f} records/s)"
        )


def _all(source: Source, arguments: Arguments) -> Iterator[bytes]:
    for _ in range(arguments.repeat):
        yield from source


def _check_place(loaded: Configuration, topic: str, partition: int | None) -> int:
    """Check that topic and partition exist; the bytes of a batch that the topic allows."""
    topics = Topics(loaded.kafka_settings())
    found = topics.partitions([topic])
    if topic not in found:
        raise InvalidConfiguration(
            [
                f"--topic: {topic} does not exist; make it with "
                "`stream-fs topics create --partitions N`"
            ]
        )
    if partition is not None and partition >= found[topic]:
        raise InvalidConfiguration([f"--partition: {topic} has {found[topic]}, counted from 0"])
    return int(topics.config(topic)["max.message.bytes"])


class _Bar:
    """How much of the file, or of the limit, has been produced."""

    def __init__(self, bar: Progress, source: Source, repeat: int, limit: int | None) -> None:
        self._bar = bar
        self._source = source
        self._limit = limit
        total = limit if limit is not None else source.size and source.size * repeat
        self._task: TaskID = bar.add_task("producing", total=total, told="")
        self._behind = self._last = 0

    def at(self, number: int) -> None:
        done = self._source.done
        if done < self._last:  # the file from its beginning again
            self._behind += self._source.size or 0
        self._last = done
        completed = number if self._limit is not None else self._behind + done
        self._bar.update(self._task, completed=completed, told=f"{number} records")


def _tell(line: str) -> None:
    """On standard output, where results go."""
    sys.stdout.write(line + "\n")
