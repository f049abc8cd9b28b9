"""Transactions are repeated until they are committed, and failed attempts are reported."""

from __future__ import annotations

import itertools
from collections.abc import Generator
from typing import Any

import pytest

from stream_fs.errors import AbortableError, FencedError, RetriableError
from stream_fs.pipeline.ports import OutgoingRecord
from stream_fs.pipeline.transaction import (
    FailedAttempt,
    Runtime,
    TransactionRunner,
    backoff_delays,
    retrying,
)
from tests.support.executors import never_run
from tests.support.memory_broker import MemoryBroker
from tests.support.memory_transport import MemoryPublisher

RECORD = OutgoingRecord("out", b"key", b"value")


class Transactions:
    """A runner on a broker in memory, with a clock that advances by itself."""

    def __init__(self, **changes: Any) -> None:
        self.broker = MemoryBroker()
        self.broker.create("out", 1)
        self.publisher = MemoryPublisher(self.broker, "id")
        assert self.publisher.acquire()
        self.now = 0.0
        self.runtime = Runtime(self.clock, lambda _: None, **{"sleep": self.sleep, **changes})
        self.runner = TransactionRunner(self.publisher, self.runtime)

    def clock(self) -> float:
        self.now += 0.01
        return self.now

    def sleep(self, seconds: float) -> None:
        self.now += seconds

    def send(self) -> int:
        return self.publisher.send([RECORD])[0]

    @property
    def committed(self) -> int:
        return len(self.broker.committed("out"))


def finish(steps: Generator[FailedAttempt | None, None, Any]) -> tuple[Any, list[FailedAttempt]]:
    """The result of steps, and their failed attempts."""
    failed: list[FailedAttempt] = []
    while True:
        try:
            attempt = next(steps)
        except StopIteration as end:
            return end.value, failed
        if attempt is not None:
            failed.append(attempt)


def test_content_is_prepared_once_and_sent_until_it_is_committed() -> None:
    tried = Transactions()
    prepared = itertools.count()
    tried.broker.fail_next("begin", RetriableError("first"))
    tried.broker.fail_next("send", AbortableError("second"), after_effect=True)
    tried.broker.fail_next("commit", RetriableError("third"))
    tried.broker.fail_next("commit", AbortableError("fourth"))
    (content, _), failed = finish(
        tried.runner.prepare_and_commit(lambda: next(prepared), lambda _: tried.send())
    )
    assert content == 0
    assert next(prepared) == 1
    assert [(attempt.outcome, attempt.error) for attempt in failed] == [
        ("retried", "first"),
        ("aborted", "second"),
        ("retried", "third"),
        ("aborted", "fourth"),
    ]
    assert tried.committed == 1


def test_an_open_outcome_repeats_the_commit_alone() -> None:
    tried = Transactions()
    tried.broker.fail_next("commit", RetriableError("no answer"), after_effect=True)
    offset, failed = finish(tried.runner.run_until_committed(tried.send))
    assert (offset, tried.committed, len(failed)) == (0, 1, 1)


def test_fencing_is_final() -> None:
    tried = Transactions()
    tried.broker.fail_next("send", FencedError("a new owner"), after_effect=True)
    with pytest.raises(FencedError):
        finish(tried.runner.run_until_committed(tried.send))
    assert tried.committed == 0


def test_a_single_attempt_is_not_repeated() -> None:
    tried = Transactions()
    tried.broker.fail_next("commit", RetriableError("no answer"))
    with pytest.raises(RetriableError):
        tried.runner.try_once(tried.send, 1.0)
    late = Transactions(executor=never_run)
    with pytest.raises(TimeoutError, match=r"within 0\.5 s"):
        late.runner.try_once(late.send, 0.5)


def test_a_publisher_in_use_is_closed_when_its_job_returns() -> None:
    tried = Transactions(executor=never_run)
    steps = tried.runner.run_until_committed(tried.send)
    next(steps)
    job = tried.runner._job
    assert job is not None
    closed: list[bool] = []
    tried.publisher.close = lambda: closed.append(True)  # type: ignore[method-assign]  # noted
    tried.runner.release()
    assert not closed
    job.exception(None)
    assert closed == [True]


def test_work_is_repeated_from_its_beginning() -> None:
    errors = [RetriableError("one"), RetriableError("two")]

    def work() -> Generator[None, None, str]:
        yield
        if errors:
            raise errors.pop(0)
        return "done"

    tried = Transactions()
    result, failed = finish(retrying(work, tried.clock))
    assert (result, [attempt.error for attempt in failed]) == ("done", ["one", "two"])


def test_delays_double_up_to_the_longest() -> None:
    assert list(itertools.islice(backoff_delays(), 9)) == [
        *(0.05 * 2**n for n in range(7)),
        5.0,
        5.0,
    ]
