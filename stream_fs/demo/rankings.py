"""Rankings as they are published, read from a growing file of JSON lines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path


class Lines:
    """The whole lines that are appended to a file, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new(self) -> Iterator[bytes]:
        """The lines since the last call; half a line waits for its rest."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield line
