"""`stream-fs demo`."""

from __future__ import annotations

from rich.console import Console

from stream_fs.cli.arguments import Arguments, Commands, add_debug
from stream_fs.service.exit_codes import ExitCode


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "demo",
        help="run the service on a real broker with real data",
        description="Starts a broker (or uses the one in STREAM_FS_BOOTSTRAP) and the service, "
        "streams handwritten digits to it, shows the rankings as they are published, and measures "
        "the selected features. Everything is deleted at the end. Without a broker, the same "
        "pipeline runs on files. Requires the extra: pip install 'stream-fs[evaluate]'.",
    )
    parser.add_argument("--keep", action="store_true", help="keep the service running until Ctrl-C")
    add_debug(parser)
    parser.set_defaults(command=_demo)


def _demo(arguments: Arguments) -> ExitCode:
    # Imported here, because the other commands do not require the extra.
    from stream_fs.demo.scenario import run_demo

    run_demo(Console(), keep=arguments.keep)
    return ExitCode.OK
