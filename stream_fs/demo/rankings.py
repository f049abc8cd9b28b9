"""Rankings as they are published, read from a growing file of JSON lines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class RankedView:
    """A view in a ranking: its weight, its features best first, and how many of the top stayed."""

    name: str
    weight: float
    features: tuple[int, ...]
    overlap: float | None


@dataclass(frozen=True)
class Published:
    """What the demo shows of a ranking."""

    sequence: int
    records: int
    """All records so far."""
    views: tuple[RankedView, ...]


def published(document: dict[str, Any]) -> Published:
    """The part of a ranking message that the demo shows."""
    selection = document["selection"] or {}
    views = tuple(
        RankedView(
            view["name"],
            view["weight"],
            tuple(feature["index"] for feature in view["features"]),
            selection.get(view["name"], {}).get("overlap"),
        )
        for view in document["views"]
    )
    return Published(document["sequence"], document["records"]["total"], views)


class Lines:
    """The whole lines that are appended to a file, each once."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._read = 0

    def new(self) -> Iterator[dict[str, Any]]:
        """The documents since the last call; half a line waits for its rest."""
        if not self._path.exists():
            return
        with self._path.open("rb") as file:
            file.seek(self._read)
            for line in file:
                if not line.endswith(b"\n"):
                    return
                self._read += len(line)
                yield json.loads(line)
