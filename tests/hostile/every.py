"""Every decoder that there is."""

from __future__ import annotations

from pathlib import Path

from tests.hostile import checkpoints, configurations, files, records
from tests.hostile.target import Target


def every_target(folder: Path) -> dict[str, Target]:
    """By name; the folder is for those that read files."""
    found = [
        *records.targets(),
        *checkpoints.targets(folder),
        *files.targets(folder),
        *configurations.targets(folder),
    ]
    return {target.name: target for target in found}
