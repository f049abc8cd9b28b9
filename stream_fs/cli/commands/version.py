"""`stream-fs version`."""

from __future__ import annotations

from importlib import metadata

from stream_fs.cli.arguments import Arguments, Commands, add_debug
from stream_fs.selector.kernels import dispatch
from stream_fs.service.exit_codes import ExitCode


def add(commands: Commands) -> None:
    """Register the command."""
    about = "print the version, and the core in use (compiled or numpy)"
    parser = commands.add_parser(
        "version",
        help=about,
        description="Prints the version, and the core of the selector in use: compiled, or numpy.",
    )
    add_debug(parser)
    parser.set_defaults(command=_version)


def _version(_: Arguments) -> ExitCode:
    core, why = dispatch.active_core(), dispatch.why_not_compiled()
    print(f"stream-fs {metadata.version('stream-fs')}")
    print(f"core: {core}" + (f" (of the compiled one: {why})" if why else ""))
    return ExitCode.OK
