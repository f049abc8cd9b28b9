"""`stream-fs config`: check a configuration, show what is in effect, or print an example."""

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
    about = "check a configuration, show it, or print an example"
    actions = commands.add_parser(
        "config", help=about, description=f"{about.capitalize()}."
    ).add_subparsers(title="commands", metavar="COMMAND", required=True)
    check = actions.add_parser(
        "check",
        help="check a configuration, without a broker",
        description="Checks file, environment and flags as a whole, tells every problem, and "
        "whether the largest possible ranking fits into a message. Needs no broker.",
    )
    add_configuration(check)
    check.set_defaults(command=_check)
    show = actions.add_parser(
        "show",
        help="print every value in effect",
        description="Prints every value in effect, as a file; secrets are not shown.",
    )
    add_configuration(show)
    show.set_defaults(command=_show)
    sample = actions.add_parser(
        "example",
        help="print a file to begin with",
        description="Prints a file to begin with, in which every key is explained.",
    )
    add_debug(sample)
    sample.set_defaults(command=_example)


def _check(arguments: Arguments) -> ExitCode:
    configuration(arguments)
    print("the configuration is as it should be")
    return ExitCode.OK


def _show(arguments: Arguments) -> ExitCode:
    print(shown(configuration(arguments)), end="")
    return ExitCode.OK


def _example(_: Arguments) -> ExitCode:
    print(example(), end="")
    return ExitCode.OK
