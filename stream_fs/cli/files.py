"""What commands that read files of records take, and how they show how far they are."""

from __future__ import annotations

import argparse
import math
import sys
import textwrap
from typing import NamedTuple, get_args

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from stream_fs.cli.arguments import Arguments
from stream_fs.replay import FileFormat

FORMATS = """\
formats, told by the end of the name or with --format:
  jsonl    .jsonl .ndjson   one record a line, JSON; empty lines are passed over
  msgpack  .msgpack .mpk    records in MessagePack, one after another
  npz      .npz             arrays instances × features, named as the views, or
                            view_0, view_1, … in their order; a row of NaN is a
                            missing view; other arrays (labels) are not read
"""


class Timestamps(NamedTuple):
    """Timestamps of records that carry none: milliseconds since 1970, and between two records."""

    first: int
    step: int

    def of(self, record: int) -> int:
        """The timestamp of a record by its number."""
        return self.first + record * self.step


def add_format(parser: argparse.ArgumentParser) -> None:
    """The flag that goes over the names of files, and what the formats are."""
    parser.add_argument(
        "--format", choices=get_args(FileFormat), help="the format, whatever the name ends with"
    )
    # The table stays as it is written; the description is wrapped here in return.
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = textwrap.fill(parser.description or "", 78)
    parser.epilog = FORMATS


def add_timestamps(parser: argparse.ArgumentParser, default: str) -> None:
    """The flags that `timestamps` reads."""
    parser.add_argument(
        "--first-timestamp",
        type=whole,
        metavar="MS",
        help=f"timestamp of the first record, milliseconds since 1970 (default: {default})",
    )
    parser.add_argument(
        "--timestamp-step",
        type=whole,
        metavar="MS",
        default=0,
        help="milliseconds between two records, with --first-timestamp (default: 0)",
    )


def timestamps(arguments: Arguments) -> Timestamps | None:
    """The timestamps that the arguments name, if they do."""
    if arguments.first_timestamp is None:
        return None
    return Timestamps(arguments.first_timestamp, arguments.timestamp_step)


def progress() -> Progress:
    """A bar on standard error where that is a terminal; nothing at all in a pipe."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[told]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def whole(text: str) -> int:
    """A whole number from 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("should be a whole number from 0")
    return int(text)


def above_zero(text: str) -> float:
    """A number above 0."""
    number = _number(text)
    if not number > 0:
        raise argparse.ArgumentTypeError("should be a number above 0")
    return number


def share(text: str) -> float:
    """A number in [0, 1)."""
    number = _number(text)
    if not 0 <= number < 1:
        raise argparse.ArgumentTypeError("should be a number from 0, below 1")
    return number


def _number(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number):
        raise argparse.ArgumentTypeError("should be a number")
    return number
