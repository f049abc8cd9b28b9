"""The commands, one module each."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from stream_fs.cli.arguments import Commands
from stream_fs.cli.commands import (
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

COMMANDS: Final[tuple[Callable[[Commands], None], ...]] = (
    run.add,
    replay.add,
    topics.add,
    produce.add,
    watch.add,
    checkpoint.add,
    config.add,
    demo.add,
    evaluate.add,
    version.add,
)
"""The functions that register the commands, in the order of `stream-fs --help`."""
