"""Chunks on their way out: folded, then ranked, then sent together, perhaps several times."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from stream_fs.pipeline.model import Model, PublishableChunk, UpdatedChunk
from stream_fs.pipeline.transaction import Clock


class Announced(NamedTuple):
    """A chunk that is ranked, and the seconds that it took."""

    outcome: PublishableChunk
    seconds: float


class InFlightBatch:
    """Folded chunks whose transaction is under way; they are ranked where that is done, aside."""

    def __init__(
        self,
        before: Model,
        chunks: Sequence[UpdatedChunk],
        announce: Callable[[Model, UpdatedChunk], PublishableChunk],
        clock: Clock,
    ) -> None:
        """`before` is the model that the first of them was folded into, `announce` ranks one."""
        self.last = chunks[-1]
        self._model = before
        self._left = list(reversed(chunks))
        self._announce = announce
        self._clock = clock
        self._announced: list[Announced] = []
        self.ready = math.inf
        """When all was ready to be sent; never, as long as it is not."""
        self.obstacle: Exception | None = None
        """Why one of them cannot be published, where those before it can."""

    def announced(self) -> Sequence[Announced]:
        """What is published; however often it is sent, it is made once."""
        while self._left:
            began = self._clock()
            try:
                outcome = self._announce(self._model, self._left[-1])
            except Exception as error:
                if not self._announced:
                    raise
                self.obstacle = error
                self._left.clear()
                break
            self._announced.append(Announced(outcome, self._clock() - began))
            self._model = outcome.model
            self._left.pop()
        if math.isinf(self.ready):
            self.ready = self._clock()
        return self._announced
