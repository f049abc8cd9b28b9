"""The job of a peer, as a file for its process."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final

CHUNK: Final = 500
"""Records in a chunk."""

CONSUMING: Final[dict[str, str]] = {"fetch.queue.backoff.ms": "10"}
PRODUCING: Final[dict[str, str]] = {"retry.backoff.ms": "10", "linger.ms": "0"}
"""The fastest settings of librdkafka that were measured for the service, for all programs."""


@dataclass(frozen=True)
class Job:
    """Records from `topic` to rankings in `rankings`, with the state kept under the name `run`."""

    bootstrap: str
    run: str
    """Consumer group, transactional id, name of the state: used by no other run."""
    topic: str
    rankings: str
    folder: str
    """For state that is kept in files."""
    origin: str
    """Of the model: its random signs, so that rankings can be compared."""
    dimension: int
    """Features of each of the views a and b."""
    selector: Mapping[str, Any]
    """Parameters of the selector."""
    exactly_once: bool
    every: int
    """Chunks between two commits of the state."""

    def write(self, path: Path) -> None:
        path.write_text(json.dumps(asdict(self)), encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Job:
        return cls(**json.loads(path.read_text(encoding="utf-8")))
