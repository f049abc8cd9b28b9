"""`stream-fs produce`: produce a file of records to an input topic."""

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
"""Records between two updates of the progress bar."""


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "produce",
        help="produce a file of records to an input topic",
        description="Produces a file of records to an input topic, each once and in order, in the "
        "format of the stream (stream.format). Records that already have this format are sent "
        "unchanged, valid or not.",
    )
    parser.add_argument("file", metavar="FILE", help="input file, or - for standard input")
    add_configuration(parser)
    add_format(parser)
    parser.add_argument("--topic", help="the topic (default: the first input topic)")
    parser.add_argument(
        "--partition", type=whole, metavar="N", help="the partition (default: all in turn)"
    )
    parser.add_argument(
        "--rate", type=above_zero, metavar="R", help="records per second, on average"
    )
    parser.add_argument(
        "--missing",
        type=share,
        default=0.0,
        metavar="SHARE",
        help="remove each view of each record with this probability; one view is always kept",
    )
    parser.add_argument(
        "--seed", type=whole, default=0, metavar="N", help="random seed of --missing (default: 0)"
    )
    parser.add_argument("--limit", type=count, metavar="N", help="maximum number of records")
    parser.add_argument(
        "--repeat",
        type=count,
        default=1,
        metavar="N",
        help="number of times to produce the file (default: 1)",
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
    """Send all records, and report how many were delivered, also after an error."""
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
                # Also when interrupted, so that the report counts all delivered records.
                feeder.finish()
    finally:
        feeder.close()
        seconds = max(time.monotonic() - began, 1e-9)
        _report(
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
                f"--topic: {topic} does not exist; create it with "
                "`stream-fs topics create --partitions N`"
            ]
        )
    if partition is not None and partition >= found[topic]:
        raise InvalidConfiguration(
            [f"--partition: {topic} has {found[topic]} partitions, counted from 0"]
        )
    return int(topics.config(topic)["max.message.bytes"])


class _Bar:
    """Shows the produced part of the file, or of the limit."""

    def __init__(self, bar: Progress, source: Source, repeat: int, limit: int | None) -> None:
        self._bar = bar
        self._source = source
        self._limit = limit
        total = limit if limit is not None else source.size and source.size * repeat
        self._task: TaskID = bar.add_task("producing", total=total, status="")
        self._behind = self._last = 0

    def at(self, number: int) -> None:
        done = self._source.done
        if done < self._last:  # the file has been started again
            self._behind += self._source.size or 0
        self._last = done
        completed = number if self._limit is not None else self._behind + done
        self._bar.update(self._task, completed=completed, status=f"{number} records")


def _report(line: str) -> None:
    """Print a result to standard output."""
    sys.stdout.write(line + "\n")
