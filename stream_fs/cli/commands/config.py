"""`stream-fs config`: check a configuration, show the values in effect, or print an example."""

from __future__ import annotations

from stream_fs.cli.arguments import (
    Arguments,
    Commands,
    add_configuration,
    add_debug,
    configuration,
)
from stream_fs.service.configuration.rendering import example, shown
from stream_fs.service.exit_codes import ExitCode


def add(commands: Commands) -> None:
    """Register the command."""
    about = "check or show a configuration, or print an example"
    actions = commands.add_parser(
        "config", help=about, description="Checks or shows a configuration, or prints an example."
    ).add_subparsers(title="commands", metavar="COMMAND", required=True)
    check = actions.add_parser(
        "check",
        help="check a configuration; needs no broker",
        description="Validates file, environment and flags as a whole, including whether the "
        "largest possible ranking fits into a message, and reports all problems. Needs no broker.",
    )
    add_configuration(check)
    check.set_defaults(command=_check)
    show = actions.add_parser(
        "show",
        help="print all values in effect",
        description="Prints all values in effect as a configuration file; secrets are redacted.",
    )
    add_configuration(show)
    show.set_defaults(command=_show)
    sample = actions.add_parser(
        "example",
        help="print an example file",
        description="Prints an example file in which every key is explained.",
    )
    add_debug(sample)
    sample.set_defaults(command=_example)


def _check(arguments: Arguments) -> ExitCode:
    configuration(arguments)
    print("the configuration is valid")
    return ExitCode.OK


def _show(arguments: Arguments) -> ExitCode:
    print(shown(configuration(arguments)), end="")
    return ExitCode.OK


def _example(_: Arguments) -> ExitCode:
    print(example(), end="")
    return ExitCode.OK
