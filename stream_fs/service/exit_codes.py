"""How the program ends, in one place: what a supervisor or a script may rely on."""

from __future__ import annotations

from enum import IntEnum

from stream_fs.errors import (
    CheckpointError,
    IncompatibleState,
    InvalidConfiguration,
    InvalidParameter,
    Refusal,
    TransportError,
)


class ExitCode(IntEnum):
    """Exit codes of `stream-fs`; the text under each is its meaning."""

    OK = 0
    """Done, or ended in order."""
    PROBLEM = 1
    """A check found something, or something failed that has no code of its own."""
    CONFIGURATION = 2
    """The command line or the configuration is wrong; trying again will not help."""
    REFUSED = 3
    """Going on would lose or falsify something; the message names the ways out."""
    BROKER = 4
    """The broker cannot be reached, or does not let us; trying again may help."""
    WATCHDOG = 70
    """A client call hung, and the process ended itself; start it again."""


def exit_code(error: BaseException) -> ExitCode:
    """The code that an error ends the program with."""
    match error:
        case InvalidConfiguration() | InvalidParameter():
            return ExitCode.CONFIGURATION
        case Refusal() | CheckpointError() | IncompatibleState():
            return ExitCode.REFUSED
        case TransportError():
            return ExitCode.BROKER
        case _:
            return ExitCode.PROBLEM
