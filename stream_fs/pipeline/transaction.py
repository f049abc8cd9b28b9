"""Transactions of one publisher, each repeated until it is committed or its owner is fenced.

Everything that waits is a generator (`Steps`), so that the loop serves other partitions meanwhile.
It yields None while it waits, and a `FailedAttempt` before it tries again. An `Executor` makes the
calls to the broker, those of one attempt as one job, so that a slow transaction does not block
other partitions.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, Literal, TypeAlias, TypeVar

from stream_fs.errors import AbortableError, RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.ports import Publisher

IDLE_SECONDS: Final = 0.001
"""How long to sleep when there is nothing to do but wait."""
FIRST_DELAY, LONGEST_DELAY = 0.05, 5.0
"""Seconds between attempts: doubled each time, up to the longest."""

Result = TypeVar("Result")
Content = TypeVar("Content")
Sent = TypeVar("Sent")


@dataclass(frozen=True, slots=True)
class FailedAttempt:
    """An attempt that failed and will be repeated."""

    outcome: Literal["retried", "aborted"]
    error: str

    @classmethod
    def of(cls, error: RetriableError | AbortableError) -> FailedAttempt:
        """The attempt that failed with this error."""
        return cls("aborted" if isinstance(error, AbortableError) else "retried", str(error))


Steps: TypeAlias = Generator[FailedAttempt | None, None, Result]
"""Work in short steps; yields None while it waits."""
Clock: TypeAlias = Callable[[], float]
Executor: TypeAlias = Callable[[Callable[[], Any]], "Future[Any]"]
"""Runs a job, possibly in another thread."""


def run_inline(job: Callable[[], Any]) -> Future[Any]:
    """An `Executor` that runs the job before it returns."""
    future: Future[Any] = Future()
    try:
        future.set_result(job())
    except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
        future.set_exception(error)
    return future


@dataclass(frozen=True, slots=True)
class Runtime:
    """The environment of tasks: time, an observer, a hook for tests, and an executor.

    `crash_hook` is called with the name of a step, in the thread that performs it: after the update
    of a chunk (`updated`), at the steps of `partition.commit.commit_batch`, and at those of the
    merge (`merge begun`, `merge sent`, `merge committed`). `sleep` waits during a graceful
    shutdown.
    """

    clock: Clock
    observe: events.Observer
    crash_hook: Callable[[str], None] = lambda _: None
    executor: Executor = run_inline
    sleep: Callable[[float], None] = time.sleep


@dataclass(frozen=True, slots=True)
class _Done(Generic[Sent]):
    """The transaction is committed; `sent` is what its sender returned."""

    sent: Sent


@dataclass(frozen=True, slots=True)
class _OutcomeOpen(Generic[Sent]):
    """The broker did not confirm the commit; it has to be repeated."""

    sent: Sent
    error: RetriableError


@dataclass(frozen=True, slots=True)
class _NotCommitted:
    """The transaction has to be aborted, and its content sent again."""

    error: RetriableError | AbortableError


class TransactionRunner:
    """Runs one transaction after the other.

    At most one job is in flight, and the publisher belongs to it until it has returned.
    """

    def __init__(self, publisher: Publisher, runtime: Runtime) -> None:
        self._publisher = publisher
        self._runtime = runtime
        self._job: Future[Any] | None = None
        self._open = False
        self._committed_at = 0.0

    def for_publisher(self, publisher: Publisher) -> TransactionRunner:
        """A runner for another publisher in the same environment."""
        return TransactionRunner(publisher, self._runtime)

    @property
    def committed_at(self) -> float:
        """When the last transaction was committed."""
        return self._committed_at

    def wait_in_flight(self, seconds: float) -> None:
        """Wait until the job in flight has returned, but no longer than `seconds`.

        Without one, during the delay between two attempts, sleep for a moment.
        """
        if self._job is None:
            self._runtime.sleep(min(seconds, IDLE_SECONDS))
            return
        with suppress(TimeoutError):
            self._job.exception(seconds)

    def run_until_committed(self, send: Callable[[], Sent]) -> Steps[Sent]:
        """Send in a transaction, again after every failure; returns what `send` returned."""
        _, sent = yield from self.prepare_and_commit(lambda: None, lambda _: send())
        return sent

    def prepare_and_commit(
        self, prepare: Callable[[], Content], send: Callable[[Content], Sent]
    ) -> Steps[tuple[Content, Sent]]:
        """Prepare content once, and send it in a transaction, again after every failure.

        The preparation and the first attempt are one job: a hop through the loop between them would
        wait for the steps of other partitions.
        """

        def prepare_and_try() -> tuple[Content, _Done[Sent] | _OutcomeOpen[Sent] | _NotCommitted]:
            prepared = prepare()
            return prepared, self._try(lambda: send(prepared))

        content, outcome = yield from self._submit(prepare_and_try)
        delays = backoff_delays()
        while True:
            if isinstance(outcome, _OutcomeOpen):
                outcome = yield from self._repeat_commit(outcome)
            if isinstance(outcome, _Done):
                return content, outcome.sent
            yield from self._back_off(outcome.error, next(delays))
            yield from self._abort()
            outcome = yield from self._submit(lambda: self._try(lambda: send(content)))

    def try_once(self, send: Callable[[], Sent], seconds: float) -> Sent:
        """Send in a transaction, wait for it at most `seconds`, and do not try again.

        Raises the publisher's errors, and TimeoutError if it takes longer.
        """
        job: Future[_Done[Sent] | _OutcomeOpen[Sent] | _NotCommitted]
        self._job = job = self._runtime.executor(lambda: self._try(send))
        self.wait_in_flight(seconds)
        if not job.done():
            raise TimeoutError(f"a transaction was not committed within {seconds:.1f} s")
        self._job = None
        outcome = job.result()
        if isinstance(outcome, _Done):
            return outcome.sent
        raise outcome.error

    def release(self) -> None:
        """Close the publisher, at once or when the job in flight has returned, without waiting.

        The next owner fences that job, so it cannot do any harm.
        """
        if self._job is None or self._job.done():
            self._publisher.close()
        else:
            self._job.add_done_callback(lambda _: self._publisher.close())

    def _submit(self, job: Callable[[], Result]) -> Steps[Result]:
        """The result of a job that the executor runs."""
        future: Future[Result] = self._runtime.executor(job)
        self._job = future
        while not future.done():
            yield None
        self._job = None
        return future.result()

    def _try(self, send: Callable[[], Sent]) -> _Done[Sent] | _OutcomeOpen[Sent] | _NotCommitted:
        try:
            self._publisher.begin()
            self._open = True
            sent = send()
        except (RetriableError, AbortableError) as error:
            return _NotCommitted(error)
        try:
            self._commit()
        except RetriableError as error:
            return _OutcomeOpen(sent, error)
        except AbortableError as error:
            return _NotCommitted(error)
        return _Done(sent)

    def _commit(self) -> None:
        self._publisher.commit()
        self._open = False
        self._committed_at = self._runtime.clock()

    def _repeat_commit(self, outcome: _OutcomeOpen[Sent]) -> Steps[_Done[Sent] | _NotCommitted]:
        """Repeat the commit until its outcome is known."""
        error, delays = outcome.error, backoff_delays()
        while self._open:
            yield from self._back_off(error, next(delays))
            try:
                yield from self._submit(self._commit)
            except RetriableError as again:
                error = again
            except AbortableError as abortable:
                return _NotCommitted(abortable)
        return _Done(outcome.sent)

    def _abort(self) -> Steps[None]:
        """Abort the open transaction, if there is one."""
        delays = backoff_delays()
        while self._open:
            try:
                yield from self._submit(self._publisher.abort)
                self._open = False
            except RetriableError as error:
                yield from self._back_off(error, next(delays))

    def _back_off(self, error: RetriableError | AbortableError, delay: float) -> Steps[None]:
        yield FailedAttempt.of(error)
        yield from wait(self._runtime.clock, delay)


def wait(clock: Clock, seconds: float) -> Steps[None]:
    """Yield until `seconds` have passed."""
    until = clock() + seconds
    while clock() < until:
        yield None


def retrying(work: Callable[[], Steps[Result]], clock: Clock) -> Steps[Result]:
    """Repeat work from its beginning, after a delay, until no `RetriableError` leaves it."""
    delays = backoff_delays()
    while True:
        try:
            return (yield from work())
        except RetriableError as error:
            yield FailedAttempt.of(error)
            yield from wait(clock, next(delays))


def backoff_delays() -> Iterator[float]:
    """Seconds between attempts: doubled each time, up to the longest."""
    delay = FIRST_DELAY
    while True:
        yield delay
        delay = min(2 * delay, LONGEST_DELAY)
