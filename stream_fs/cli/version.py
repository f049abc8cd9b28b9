"""`stream-fs version`."""

from __future__ import annotations

from importlib import metadata

from stream_fs.cli.arguments import Arguments, Commands, add_debug
from stream_fs.service.exit_codes import ExitCode


def add(commands: Commands) -> None:
    """Register the command."""
    about = "print the version"
    parser = commands.add_parser("version", help=about, description=f"{about.capitalize()}.")
    add_debug(parser)
    parser.set_defaults(command=_version)


def _version(_: Arguments) -> ExitCode:
    print(f"stream-fs {metadata.version('stream-fs')}")
    return ExitCode.OK
