"""A chunk on its way out: folded, then ranked, then sent, perhaps several times."""

from __future__ import annotations

import math
from collections.abc import Callable

from stream_fs.pipeline.outcome import Folded, Outcome
from stream_fs.pipeline.transaction import Clock


class Coming:
    """A folded chunk whose transaction is under way; it is ranked where that is done, aside."""

    def __init__(self, folded: Folded, announce: Callable[[], Outcome], clock: Clock) -> None:
        self.folded = folded
        self._announce = announce
        self._clock = clock
        self._outcome: Outcome | None = None
        self.announced = math.inf
        """When all was ready to be sent; never, as long as it is not."""
        self.seconds = 0.0
        """That ranking took."""

    def outcome(self) -> Outcome:
        """What is published; however often it is sent, it is made once."""
        if self._outcome is None:
            began = self._clock()
            self._outcome = self._announce()
            self.announced = self._clock()
            self.seconds = self.announced - began
        return self._outcome
