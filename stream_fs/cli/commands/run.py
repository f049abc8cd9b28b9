"""`stream-fs run`: the service."""

from __future__ import annotations

import logging
from typing import Final

from stream_fs.cli.arguments import Arguments, Commands, add_configuration, configuration
from stream_fs.errors import StreamFsError
from stream_fs.service.exit_codes import ExitCode, exit_code
from stream_fs.service.observability.logging import ROOT
from stream_fs.service.process.signals import SignalHandler

_LOGGER: Final = logging.getLogger(ROOT)


def add(commands: Commands) -> None:
    """Register the command."""
    parser = commands.add_parser(
        "run",
        help="run the service",
        description="Reads the input topics and publishes rankings. SIGTERM or SIGINT shuts down "
        "gracefully, with exit code 0; a second signal ends it immediately.",
    )
    add_configuration(parser)
    parser.set_defaults(command=_run)


def _run(arguments: Arguments) -> ExitCode:
    # First of all, so that a signal during startup also ends the process with exit code 0.
    with SignalHandler() as stopping:
        return _service(arguments, stopping)


def _service(arguments: Arguments, stopping: SignalHandler) -> ExitCode:
    loaded = configuration(arguments)
    # Imported here, so that other commands start without loading the service.
    from stream_fs.service.run import run

    try:
        return run(loaded, stopping)
    except StreamFsError as error:
        if loaded.log.format == "text":
            raise
        # A consumer of the JSON log finds the error there.
        _LOGGER.error(str(error), exc_info=arguments.debug)
        return exit_code(error)
