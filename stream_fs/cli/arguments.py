"""Arguments that several commands share: configuration, file formats, timestamps and numbers."""

from __future__ import annotations

import argparse
import math
import os
import sys
import textwrap
from pathlib import Path
from typing import NamedTuple, Protocol, TypeAlias

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
from stream_fs.replay import ARRAYS, file_formats
from stream_fs.service.configuration import Configuration, load
from stream_fs.wire import FORMATS

_ARRAYS_HELP = """\
arrays instances × features, named after the views, or
view_0, view_1, … in their order; a row of NaN is a
missing view; other arrays (labels) are ignored"""


class Timestamps(NamedTuple):
    """Timestamps of records without their own, in milliseconds: the first, and the interval."""

    first: int
    step: int

    def of(self, record: int) -> int:
        """The timestamp of a record, counted from 0."""
        return self.first + record * self.step


def add_format(parser: argparse.ArgumentParser) -> None:
    """The flag that overrides the extensions of files, and the table of formats."""
    parser.add_argument(
        "--format",
        choices=sorted(file_formats()),
        help="format of the files (default: by extension)",
    )
    # argparse must not wrap the table, so the description is wrapped here.
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.description = textwrap.fill(parser.description or "", 78)
    parser.epilog = _formats_help()


def _formats_help() -> str:
    """A table of the formats of files."""
    files = sorted((format.files for format in FORMATS.values()), key=lambda files: files.name)
    rows = [(one.name, " ".join(one.suffixes), one.description) for one in files]
    lines = ["formats, determined by the extension or by --format:"]
    for name, suffixes, description in (*rows, (ARRAYS, ".npz", _ARRAYS_HELP)):
        head = f"  {name:<8} {suffixes:<16} "
        lines.append(head + description.replace("\n", "\n" + " " * len(head)))
    return "\n".join(lines) + "\n"


def add_timestamps(parser: argparse.ArgumentParser, default: str) -> None:
    """The flags that `timestamps` reads."""
    parser.add_argument(
        "--first-timestamp",
        type=whole,
        metavar="MS",
        help=f"timestamp of the first record, in milliseconds since 1970 (default: {default})",
    )
    parser.add_argument(
        "--timestamp-step",
        type=whole,
        metavar="MS",
        default=0,
        help="milliseconds between two records; with --first-timestamp (default: 0)",
    )


def timestamps(arguments: Arguments) -> Timestamps | None:
    """The timestamps in the arguments, if any."""
    if arguments.first_timestamp is None:
        return None
    return Timestamps(arguments.first_timestamp, arguments.timestamp_step)


def progress() -> Progress:
    """A progress bar on standard error; disabled unless that is a terminal."""
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[status]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not sys.stderr.isatty(),
    )


def whole(text: str) -> int:
    """A whole number of at least 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError("should be a whole number of at least 0")
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
        raise argparse.ArgumentTypeError("should be a number in [0, 1)")
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
    """The subparsers with which commands are registered."""

    def add_parser(self, name: str, *, help: str, description: str) -> argparse.ArgumentParser:
        """A parser for the command with this name."""
        ...


Arguments: TypeAlias = argparse.Namespace


def add_debug(parser: argparse.ArgumentParser) -> None:
    """The flag for tracebacks."""
    parser.add_argument(
        "--debug", action="store_true", help="print the traceback of an error, for bug reports"
    )


def add_configuration(parser: argparse.ArgumentParser) -> None:
    """The flags that `configuration` reads."""
    parser.add_argument(
        "--config",
        metavar="FILE",
        type=Path,
        help=f"configuration file, TOML (default: ${CONFIG_VARIABLE}); see "
        "`stream-fs config example`",
    )
    parser.add_argument(
        "--set",
        metavar="SECTION.KEY=VALUE",
        action="append",
        default=[],
        help="override a value of the file and the environment (STREAM_FS_SECTION__KEY); "
        "repeatable. Secrets belong in the environment or in a file",
    )
    add_debug(parser)


def configuration(arguments: Arguments) -> Configuration:
    """The configuration that the arguments name; its secrets are added to the arguments."""
    path: Path | None = arguments.config
    if path is None:
        if not os.environ.get(CONFIG_VARIABLE):
            raise InvalidConfiguration([f"--config: is missing, and {CONFIG_VARIABLE} is not set"])
        path = Path(os.environ[CONFIG_VARIABLE])
    loaded = load(path, os.environ, arguments.set)
    arguments.secrets = loaded.secrets()
    return loaded


def count(text: str) -> int:
    """A whole number of at least 1."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError("should be a whole number of at least 1")
    return int(text)
