"""`stream-fs demo`."""

from __future__ import annotations

from rich.console import Console

from stream_fs.cli.arguments import Arguments, Commands, add_debug
from stream_fs.service.exit_codes import ExitCode


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "demo",
        help="see it at work on real data",
        description="Starts a broker (or takes the one in STREAM_FS_BOOTSTRAP) and the service, "
        "streams handwritten digits to it, shows the rankings as they come, and sums up what they "
        "are worth. Everything is gone at the end. Without any broker it runs the same pipeline on "
        "files. Needs the extra: pip install 'stream-fs[evaluate]'.",
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep it running at the end, until Ctrl-C"
    )
    add_debug(parser)
    parser.set_defaults(command=_demo)


def _demo(arguments: Arguments) -> ExitCode:
    # Here, because it needs an extra that the other commands do not.
    from stream_fs.demo.scenario import run_demo

    run_demo(Console(), keep=arguments.keep)
    return ExitCode.OK
