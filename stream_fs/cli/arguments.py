"""What several commands take: the configuration, and flags over it."""

from __future__ import annotations

import argparse
import math
import os
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias, get_args

from rich.console import Console
from rich.progress import (
    BarColumn,
    Progress,
    TaskProgressColumn,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from stream_fs.errors import InvalidConfiguration
from stream_fs.replay import FileFormat
from stream_fs.service.configuration import Configuration, load

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


CONFIG_VARIABLE = "STREAM_FS_CONFIG"


class Commands(Protocol):
    """Where a command registers itself."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser:
        """A parser for the command of this name."""
        ...


Arguments: TypeAlias = argparse.Namespace


def add_debug(parser: argparse.ArgumentParser) -> None:
    """The flag that shows where an error comes from."""
    parser.add_argument(
        "--debug", action="store_true", help="show the traceback of an error, for reports of bugs"
    )


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """The flags that `configuration` reads."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help=f"the configuration, a TOML file (default: ${CONFIG_VARIABLE}); see "
        "`stream-fs config example`",
    )
    parser.add_argument(
        "--set",
        metavar="SECTION.KEY=VALUE",
        action="append",
        default=[],
        help="a value that goes over the file and the environment (STREAM_FS_SECTION__KEY); "
        "may be repeated. Secrets belong into the environment or a file",
    )
    add_debug(parser)


def configuration(arguments: Arguments) -> Configuration:
    """The configuration that the arguments name; from then on its secrets are known."""
    path: Path | None = arguments.config
    if path is None:
        if not os.environ.get(CONFIG_VARIABLE):
            raise InvalidConfiguration([f"--config: is missing, and {CONFIG_VARIABLE} is not set"])
        path = Path(os.environ[CONFIG_VARIABLE])
    loaded = load(path, os.environ, arguments.set)
    arguments.secrets = loaded.secrets()
    return loaded


def count(text: str) -> int:
    """The type of a flag that takes a number of things."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("should be a whole number from 1")
    return int(text)
