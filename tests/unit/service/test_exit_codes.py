"""Exit codes: every error of the tree has one, and the numbers stay what they are."""

from __future__ import annotations

import errno

import pytest

from stream_fs import errors
from stream_fs.service.exit_codes import ExitCode, exit_code


def test_the_numbers_are_what_supervisors_rely_on() -> None:
    assert {code.name: code.value for code in ExitCode} == {
        "OK": 0,
        "PROBLEM": 1,
        "CONFIGURATION": 2,
        "REFUSED": 3,
        "BROKER": 4,
        "SILENCE": 5,
        "STORAGE": 6,
        "WATCHDOG": 70,
        "INTERRUPTED": 130,
    }


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (errors.InvalidConfiguration(["x"]), ExitCode.CONFIGURATION),
        (errors.InvalidParameter("x"), ExitCode.CONFIGURATION),
        (errors.OffsetGone("x"), ExitCode.REFUSED),
        (errors.PoisonFlood("x"), ExitCode.REFUSED),
        (errors.BadRecordRefused("x"), ExitCode.REFUSED),
        (errors.NoOwnership("x"), ExitCode.REFUSED),
        (errors.BrokenFile("x"), ExitCode.REFUSED),
        (errors.CorruptSnapshot("x"), ExitCode.REFUSED),
        (errors.ConfigurationChanged(["x"]), ExitCode.REFUSED),
        (errors.BoundaryMoved(("x", 0), 1, 2, 3), ExitCode.REFUSED),
        (errors.IncompatibleState("x"), ExitCode.REFUSED),
        (errors.FatalError("x"), ExitCode.BROKER),
        (errors.RetriableError("x"), ExitCode.BROKER),
        (errors.CannotWrite("file", "x"), ExitCode.STORAGE),
        (OSError(errno.ENOSPC, "x"), ExitCode.STORAGE),
        (OSError(errno.ENOENT, "x"), ExitCode.PROBLEM),
        (errors.InvalidChunk("x"), ExitCode.PROBLEM),
        (RuntimeError("x"), ExitCode.PROBLEM),
    ],
)
def test_an_error_ends_the_program_with_its_code(error: Exception, code: ExitCode) -> None:
    assert exit_code(error) is code
