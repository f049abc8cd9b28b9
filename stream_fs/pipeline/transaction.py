"""Transactions of one owner, each tried until it is through or the owner is fenced.

Everything that waits is a generator that yields, so that the caller can do something else. Calls to
the broker are made by an `Executor`, those of one transaction together: they block no other
partition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, TypeVar, cast

from stream_fs.errors import AbortableError, RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Publisher

MOMENT = 0.001
"""Seconds that one waits where there is nothing else to do."""
FIRST_PAUSE, LONGEST_PAUSE = 0.05, 5.0
"""Seconds between attempts: doubled up to the longest."""

Steps: TypeAlias = Generator[None, None, None]
Clock: TypeAlias = Callable[[], float]
Failure: TypeAlias = Literal["retried", "aborted"]
Sent = TypeVar("Sent")
Result = TypeVar("Result")
Executor: TypeAlias = Callable[[Callable[[], Any]], "Future[Any]"]
"""Has something called, perhaps by another thread."""


def run_inline(call: Callable[[], Any]) -> Future[Any]:
    """The `Executor` that does it here and now."""
    future: Future[Any] = Future()
    try:
        future.set_result(call())
    except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
        future.set_exception(error)
    return future


@dataclass(frozen=True, slots=True)
class Runtime:
    """What a task is handed: time, an observer, and a hook that is told every step of a commit.

    `aside` has transactions done; where that is another thread, so is the hook called, but for its
    steps before and after. `sleep` waits where an end in order has nothing else to do.
    """

    clock: Callable[[], float]
    observe: events.Observer
    crash_hook: Callable[[str], None] = lambda _: None
    executor: Executor = run_inline
    sleep: Callable[[float], None] = time.sleep


class TransactionRunner:
    """One after the other; `failed` is told of every attempt that did not come through.

    Only one call is aside at a time, and the publisher is its own until it has returned.
    """

    def __init__(
        self,
        publisher: Publisher,
        clock: Clock,
        failed: Callable[[Failure, str], None],
        executor: Executor = run_inline,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._publisher = publisher
        self._clock = clock
        self._failed = failed
        self._executor = executor
        self._sleep = sleep
        self._call: Future[Any] | None = None
        self._open = False
        self._ended = 0.0

    def of(self, publisher: Publisher) -> TransactionRunner:
        """Transactions of another publisher, with the same clock, executor and callbacks."""
        return TransactionRunner(publisher, self._clock, self._failed, self._executor, self._sleep)

    @property
    def ended(self) -> float:
        """When the last one came through."""
        return self._ended

    def settle(self, seconds: float) -> None:
        """Wait until the call that is aside has returned, but not longer than so many seconds.

        Where none is, because there is a pause between two attempts, wait for a moment of it.
        """
        if self._call is None:
            self._sleep(min(seconds, MOMENT))
            return
        with suppress(TimeoutError):
            self._call.exception(seconds)

    def through(self, send: Callable[[], Sent]) -> Generator[None, None, Sent]:
        """Send within a transaction, again after every failure; what `send` returned at last."""
        attempts = pauses()
        while True:
            try:
                sent, undecided = yield from self._elsewhere(lambda: self._attempt(send))
                if undecided is not None:
                    yield from self._committing(undecided)
            except (RetriableError, AbortableError) as error:
                yield from self._recovering(error, next(attempts))
                yield from self._aborting()
            else:
                return sent

    def once(self, send: Callable[[], Sent], seconds: float) -> Sent:
        """Send within a transaction, and wait so long for it; it is not tried again.

        Raises what the publisher does, and TimeoutError where it takes longer.
        """
        self._call = call = self._executor(lambda: self._attempt(send))
        self.settle(seconds)
        if not call.done():
            raise TimeoutError(f"a transaction has not come through in {seconds:.1f} s")
        self._call = None
        sent, undecided = call.result()
        if undecided is not None:
            raise undecided
        return cast(Sent, sent)

    def leave(self) -> None:
        """Let go of the publisher, at once or as soon as the call that is aside has returned.

        Nobody waits for that: whoever takes over next fences it, so it cannot do any harm.
        """
        if self._call is None or self._call.done():
            self._publisher.close()
        else:
            self._call.add_done_callback(lambda _: self._publisher.close())

    def _elsewhere(self, call: Callable[[], Result]) -> Generator[None, None, Result]:
        """What a call returns that is made aside."""
        made: Future[Result] = self._executor(call)
        self._call = made
        while not made.done():
            yield
        self._call = None
        return made.result()

    def _attempt(self, send: Callable[[], Sent]) -> tuple[Sent, RetriableError | None]:
        """What was sent, and why it is open whether it was committed."""
        self._publisher.begin()
        self._open = True
        sent = send()
        try:
            self._commit()
        except RetriableError as error:
            return sent, error
        return sent, None

    def _commit(self) -> None:
        self._publisher.commit()
        self._open = False
        self._ended = self._clock()

    def _committing(self, error: RetriableError) -> Steps:
        """Ask again how the end of the transaction went, until it is known."""
        attempts = pauses()
        while self._open:
            yield from self._recovering(error, next(attempts))
            try:
                yield from self._elsewhere(self._commit)
            except RetriableError as again:
                error = again

    def _aborting(self) -> Steps:
        """Void the open transaction, if there is one."""
        attempts = pauses()
        while self._open:
            try:
                yield from self._elsewhere(self._publisher.abort)
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


def retrying(work: Callable[[], Steps], clock: Clock, failed: Callable[[str], None]) -> Steps:
    """Do steps from the beginning again wherever the broker does not answer; `failed` is told."""
    attempts = pauses()
    while True:
        try:
            yield from work()
        except RetriableError as error:
            failed(str(error))
            yield from wait(clock, next(attempts))
        else:
            return


def pauses() -> Iterator[float]:
    """Seconds between attempts: doubled each time, up to the longest."""
    pause = FIRST_PAUSE
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE)
