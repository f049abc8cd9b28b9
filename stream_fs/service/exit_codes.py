"""How the program ends, in one place: what a supervisor or a script may rely on."""

from __future__ import annotations

import errno
from enum import IntEnum
from typing import Self

from stream_fs.errors import (
    CannotWrite,
    CheckpointError,
    IncompatibleState,
    InvalidConfiguration,
    InvalidParameter,
    Refusal,
    TransportError,
)


class ExitCode(IntEnum):
    """Exit codes of `stream-fs`, each with its meaning."""

    meaning: str

    def __new__(cls, code: int, meaning: str) -> Self:
        """A number that carries its meaning."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "done, or ended in order"
    PROBLEM = 1, "a check found something, or something failed that has no code of its own"
    CONFIGURATION = 2, "the command line or the configuration is wrong; it will be wrong again"
    REFUSED = 3, "going on would lose or falsify something; the message names the ways out"
    BROKER = 4, "the broker cannot be reached, or does not let us; trying again may help"
    SILENCE = 5, "nothing came in the time that `watch --timeout` gives"
    STORAGE = 6, "a file cannot be written; what is saved is saved, make room and start it again"
    WATCHDOG = 70, "a client call hung, and the process ended itself; start it again"
    INTERRUPTED = 130, "interrupted (Ctrl-C); what is saved is saved, start it again to go on"


def exit_code(error: BaseException) -> ExitCode:
    """The code that an error ends the program with."""
    match error:
        case InvalidConfiguration() | InvalidParameter():
            return ExitCode.CONFIGURATION
        case Refusal() | CheckpointError() | IncompatibleState():
            return ExitCode.REFUSED
        case TransportError():
            return ExitCode.BROKER
        # The latter of what was only printed, into a file.
        case CannotWrite() | OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG):
            return ExitCode.STORAGE
        case _:
            return ExitCode.PROBLEM
