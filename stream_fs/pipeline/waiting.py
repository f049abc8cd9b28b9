"""Chunks that are folded, and wait to be published together.

A transaction costs about the same whether it holds one ranking or ten. A stream that is behind has
the next chunk at hand, and nobody reads its rankings the moment they come: there a chunk waits for
those behind it, for a moment. One that is not behind publishes every chunk at once.
"""

from __future__ import annotations

from typing import NamedTuple

from stream_fs.pipeline.outcome import Folded
from stream_fs.pipeline.transaction import Clock


class Waited(NamedTuple):
    """A folded chunk, and the seconds that it took."""

    folded: Folded
    seconds: float


class Waiting:
    """The chunks behind those that are under way, oldest first."""

    def __init__(self, linger: float, clock: Clock) -> None:
        """The first waits `linger` seconds at most."""
        self._linger = linger
        self._clock = clock
        self._chunks: list[Waited] = []
        self._until = 0.0

    def __bool__(self) -> bool:
        return bool(self._chunks)

    @property
    def newest(self) -> Folded | None:
        """What was folded last, if anything waits."""
        return self._chunks[-1].folded if self._chunks else None

    @property
    def time_left(self) -> bool:
        """Whether there is time to fold one more, as long as that has taken before."""
        return not self._chunks or self._clock() + self._chunks[-1].seconds < self._until

    def add(self, folded: Folded, seconds: float) -> None:
        """Let a chunk wait."""
        if not self._chunks:
            self._until = self._clock() + self._linger
        self._chunks.append(Waited(folded, seconds))

    def take(self) -> list[Waited]:
        """All of them; then none waits."""
        taken, self._chunks = self._chunks, []
        return taken
