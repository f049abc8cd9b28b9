"""`stream-fs`: runs a command, and reports an error as one message and an exit code."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata

from stream_fs.cli.commands import COMMANDS
from stream_fs.errors import StreamFsError
from stream_fs.service.configuration.secrets import redacted
from stream_fs.service.exit_codes import ExitCode, exit_code
from stream_fs.service.observability.logging import ROOT


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    arguments = parser().parse_args(argv)
    # The Kafka client logs every attempt to connect. Until the service configures logging, one
    # message at the end is enough.
    logging.getLogger(ROOT).addHandler(logging.NullHandler())
    try:
        code = int(arguments.command(arguments))
        sys.stdout.flush()  # output that cannot be written is an error
        return code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # the reader has closed the pipe
        _drop_output()
        return ExitCode.OK
    except Exception as error:  # noqa: BLE001  # reported with an exit code
        if arguments.debug:
            _report("".join(traceback.format_exception(error)), arguments)
        _report(f"stream-fs: {_message(error)}\n", arguments)
        _drop_output()
        return exit_code(error)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    codes = "\n".join(f"  {code.value:<4}{code.meaning}" for code in ExitCode)
    parser = argparse.ArgumentParser(
        prog="stream-fs",
        description="Online unsupervised feature selection on multi-view streams in Kafka.",
        epilog=f"exit codes:\n{codes}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    release = f"stream-fs {metadata.version('stream-fs')}"
    parser.add_argument(
        "--version", action="version", version=release, help="print the version and exit"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for add in COMMANDS:
        add(commands)
    return parser


def _message(error: Exception) -> str:
    """The message of the error, followed by its notes."""
    return "; ".join([_text(error), *getattr(error, "__notes__", ())])


def _text(error: Exception) -> str:
    if isinstance(error, StreamFsError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:  # a full disk, missing permissions, …
        return f"{error.filename or 'output'}: {error.strerror}"
    if isinstance(error, MemoryError):
        return f"out of memory; raise the memory limit: {str(error) or 'of unknown size'}"
    return f"{type(error).__name__}: {error} (a bug in stream-fs; --debug prints the traceback)"


def _drop_output() -> None:
    """Discard output that cannot be written, on which the interpreter would fail again at exit."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _report(text: str, arguments: argparse.Namespace) -> None:
    sys.stderr.write(redacted(text, getattr(arguments, "secrets", ())))
