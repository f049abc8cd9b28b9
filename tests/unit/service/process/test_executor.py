"""Calls made aside: in other threads, which stay for the next call."""

from __future__ import annotations

import threading

import pytest

from stream_fs.service.process.executor import CommitThreads

PATIENCE = 30.0


def test_calls_one_after_the_other_need_one_thread() -> None:
    aside = CommitThreads()
    threads = {aside(threading.get_ident).result(PATIENCE) for _ in range(50)}
    assert len(threads) == 1
    assert threading.get_ident() not in threads


def test_a_call_that_hangs_holds_up_no_other() -> None:
    aside, on = CommitThreads(), threading.Event()
    hanging = [aside(on.wait) for _ in range(3)]
    assert aside(lambda: "done").result(PATIENCE) == "done"
    assert not any(call.done() for call in hanging)
    on.set()
    assert all(call.result(PATIENCE) for call in hanging)


def test_what_a_call_raises_is_raised_where_it_is_asked_for() -> None:
    def fail() -> None:
        raise MemoryError("none left")

    aside = CommitThreads()
    with pytest.raises(MemoryError, match="none left"):
        aside(fail).result(PATIENCE)
    assert aside(lambda: 1).result(PATIENCE) == 1
