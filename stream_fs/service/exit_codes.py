"""The exit codes of the program, on which supervisors and scripts may rely."""

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
        """A number with a meaning."""
        member = int.__new__(cls, code)
        member._value_ = code
        member.meaning = meaning
        return member

    OK = 0, "success, or clean shutdown"
    PROBLEM = 1, "a check found problems, or any other error"
    CONFIGURATION = 2, "invalid command line or configuration; a restart does not help"
    REFUSED = 3, "continuing would lose or falsify data; the message names the remedies"
    BROKER = 4, "the broker is unreachable or denies access; a restart may help"
    SILENCE = 5, "no ranking arrived within `watch --timeout`"
    STORAGE = 6, "a file cannot be written; saved data is intact: free space and run again"
    WATCHDOG = 70, "a client call hung and the watchdog ended the process; restart"
    INTERRUPTED = 130, "interrupted (Ctrl-C); saved data is intact: run again to continue"


def exit_code(error: BaseException) -> ExitCode:
    """The exit code for an error."""
    match error:
        case InvalidConfiguration() | InvalidParameter():
            return ExitCode.CONFIGURATION
        case Refusal() | CheckpointError() | IncompatibleState():
            return ExitCode.REFUSED
        case TransportError():
            return ExitCode.BROKER
        # The second is raised where output is redirected to a file.
        case CannotWrite() | OSError(errno=errno.ENOSPC | errno.EDQUOT | errno.EFBIG):
            return ExitCode.STORAGE
        case _:
            return ExitCode.PROBLEM
