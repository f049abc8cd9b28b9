"""Transactions of one owner, each tried until it is through or the owner is fenced.

Everything that waits is a generator that yields, so that the caller can do something else.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from typing import Literal, TypeAlias, TypeVar

from stream_fs.errors import AbortableError, RetriableError
from stream_fs.pipeline.ports import Outbox

FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
"""Seconds between attempts: doubled up to the longest."""

Steps: TypeAlias = Generator[None, None, None]
Clock: TypeAlias = Callable[[], float]
Failure: TypeAlias = Literal["retried", "aborted"]
Sent = TypeVar("Sent")


class Transactions:
    """One after the other; `failed` is told of every attempt that did not come through."""

    def __init__(
        self, outbox: Outbox, clock: Clock, failed: Callable[[Failure, str], None]
    ) -> None:
        self._outbox = outbox
        self._clock = clock
        self._failed = failed
        self._open = False

    def through(self, send: Callable[[], Sent]) -> Generator[None, None, Sent]:
        """Send within a transaction, again after every failure; what `send` returned at last."""
        attempts = pauses()
        while True:
            try:
                self._outbox.begin()
                self._open = True
                sent = send()
                yield from self._committing()
            except (RetriableError, AbortableError) as error:
                yield from self._recovering(error, next(attempts))
                yield from self._aborting()
            else:
                return sent

    def _committing(self) -> Steps:
        """End the transaction; where it is open how that went, ask again until it is known."""
        attempts = pauses()
        while True:
            try:
                self._outbox.commit()
            except RetriableError as error:
                yield from self._recovering(error, next(attempts))
            else:
                self._open = False
                return

    def _aborting(self) -> Steps:
        """Void the open transaction, if there is one."""
        attempts = pauses()
        while self._open:
            try:
                self._outbox.abort()
                self._open = False
            except RetriableError as error:
                yield from self._recovering(error, next(attempts))

    def _recovering(self, error: RetriableError | AbortableError, pause: float) -> Steps:
        self._failed("aborted" if isinstance(error, AbortableError) else "retried", str(error))
        yield from wait(self._clock, pause)


def wait(clock: Clock, seconds: float) -> Steps:
    """Let so many seconds go by."""
    until = clock() + seconds
    while clock() < until:
        yield


def pauses() -> Iterator[float]:
    """Seconds between attempts: doubled each time, up to the longest."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)
