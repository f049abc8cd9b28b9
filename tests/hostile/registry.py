"""The targets of the fuzzer."""

from __future__ import annotations

from pathlib import Path

from tests.hostile import checkpoints, configurations, files, records
from tests.hostile.target import Target


def all_targets(folder: Path) -> dict[str, Target]:
    """By name; the folder is for targets that read files."""
    targets = [
        *records.targets(),
        *checkpoints.targets(folder),
        *files.targets(folder),
        *configurations.targets(folder),
    ]
    return {target.name: target for target in targets}
