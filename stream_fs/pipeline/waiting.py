"""Chunks that are folded, and wait to be published together.

A transaction costs about the same whether it holds one ranking or ten. A stream that is behind has
the next chunk at hand, and nobody reads its rankings the moment they come: there a chunk waits for
those behind it, for a moment. One that is not behind publishes every chunk at once.
"""

from __future__ import annotations

import math
from typing import Final, NamedTuple

from stream_fs.pipeline.model import UpdatedChunk
from stream_fs.pipeline.transaction import Clock

_LETTER_BYTES: Final = 4_000_000
"""Of dead letters that wait; with more, nothing else does: a transaction has to come through in the
time that a call may take."""


class LingeringChunk(NamedTuple):
    """A folded chunk, and the seconds that it took."""

    folded: UpdatedChunk
    seconds: float


class LingerBuffer:
    """The chunks behind those that are under way, oldest first."""

    def __init__(self, linger: float, clock: Clock) -> None:
        """The first waits `linger` seconds at most."""
        self._linger = linger
        self._clock = clock
        self._chunks: list[LingeringChunk] = []
        self._until = 0.0
        self._letters = 0
        self._turned = self._turn = -math.inf

    def __bool__(self) -> bool:
        return bool(self._chunks)

    @property
    def newest(self) -> UpdatedChunk | None:
        """What was folded last, if anything waits."""
        return self._chunks[-1].folded if self._chunks else None

    @property
    def rows(self) -> int:
        """Records in all of them."""
        return sum(chunk.folded.report.rows for chunk in self._chunks)

    @property
    def open(self) -> bool:
        """Whether there is time to fold one more, and room for what it brings.

        It will take as long as the last one, or as a turn of everybody else, where that is longer.
        """
        if not self._chunks:
            return True
        needed = max(self._chunks[-1].seconds, self._turn)
        return self._letters < _LETTER_BYTES and self._clock() + needed < self._until

    def turn(self) -> None:
        """Take note that it is our turn; others may have theirs before the next."""
        now = self._clock()
        self._turn, self._turned = now - self._turned, now

    def add(self, folded: UpdatedChunk, seconds: float) -> None:
        """Let a chunk wait."""
        if not self._chunks:
            self._until, self._letters = self._clock() + self._linger, 0
        self._letters += sum(letter.size for letter in folded.letters)
        self._chunks.append(LingeringChunk(folded, seconds))

    def take(self) -> list[LingeringChunk]:
        """All of them; then none waits."""
        taken, self._chunks = self._chunks, []
        return taken
