"""`stream-fs`: runs a command, and turns what goes wrong into one message and an exit code."""

from __future__ import annotations

import argparse
import logging
import os
import sys
import traceback
from collections.abc import Sequence
from importlib import metadata

from stream_fs.cli import (
    checkpoint,
    config,
    demo,
    evaluate,
    produce,
    replay,
    run,
    topics,
    version,
    watch,
)
from stream_fs.errors import StreamFsError
from stream_fs.service.configuration.secrets import redacted
from stream_fs.service.exit_codes import ExitCode, exit_code
from stream_fs.service.observability.logging import ROOT


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command; its exit code."""
    arguments = parser().parse_args(argv)
    # The Kafka client tells every attempt to connect; until the service sets its log up, one
    # message at the end is enough.
    logging.getLogger(ROOT).addHandler(logging.NullHandler())
    try:
        code = int(arguments.command(arguments))
        sys.stdout.flush()  # what cannot be written any more is to be told of
        return code
    except KeyboardInterrupt:
        return ExitCode.INTERRUPTED
    except BrokenPipeError:  # whoever was reading has seen enough
        _drop_output()
        return ExitCode.OK
    except Exception as error:  # noqa: BLE001  # told to the user, with a code
        if arguments.debug:
            _tell("".join(traceback.format_exception(error)), arguments)
        _tell(f"stream-fs: {_message(error)}\n", arguments)
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
    told = f"stream-fs {metadata.version('stream-fs')}"
    parser.add_argument("--version", action="version", version=told, help="print it, and end")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in (
        run,
        replay,
        topics,
        produce,
        watch,
        checkpoint,
        config,
        demo,
        evaluate,
        version,
    ):
        command.add(commands)
    return parser


def _message(error: Exception) -> str:
    """The message of the error, followed by its notes."""
    return "; ".join([_what(error), *getattr(error, "__notes__", ())])


def _what(error: Exception) -> str:
    if isinstance(error, StreamFsError):
        return str(error)
    if isinstance(error, OSError) and error.strerror:  # a full disk, a file that is not ours, …
        return f"{error.filename or 'output'}: {error.strerror}"
    if isinstance(error, MemoryError):
        return (
            f"there is not enough memory; give the process more: {str(error) or 'no size is told'}"
        )
    return f"{type(error).__name__}: {error} (this should not happen; --debug shows where it did)"


def _drop_output() -> None:
    """Let go of what cannot be written: the interpreter would fail on it at its end, once more."""
    try:
        sys.stdout.flush()
    except OSError:
        null = os.open(os.devnull, os.O_WRONLY)
        os.dup2(null, sys.stdout.fileno())
        os.close(null)


def _tell(text: str, arguments: argparse.Namespace) -> None:
    sys.stderr.write(redacted(text, getattr(arguments, "secrets", ())))
