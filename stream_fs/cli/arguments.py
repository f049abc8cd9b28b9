"""What several commands take: the configuration, and flags over it."""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Protocol, TypeAlias

from stream_fs.errors import InvalidConfiguration
from stream_fs.service.configuration import Configuration, load

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
