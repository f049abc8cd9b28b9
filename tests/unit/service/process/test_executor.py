"""Calls run in threads, which are kept for the next call."""

from __future__ import annotations

import threading

import pytest

from stream_fs.service.process.executor import CommitThreads

PATIENCE = 30.0


def test_calls_one_after_the_other_need_one_thread() -> None:
    threads = CommitThreads()
    idents = {threads(threading.get_ident).result(PATIENCE) for _ in range(50)}
    assert len(idents) == 1
    assert threading.get_ident() not in idents


def test_a_call_that_hangs_holds_up_no_other() -> None:
    threads, on = CommitThreads(), threading.Event()
    hanging = [threads(on.wait) for _ in range(3)]
    assert threads(lambda: "done").result(PATIENCE) == "done"
    assert not any(call.done() for call in hanging)
    on.set()
    assert all(call.result(PATIENCE) for call in hanging)


def test_what_a_call_raises_is_raised_where_it_is_asked_for() -> None:
    def fail() -> None:
        raise MemoryError("none left")

    threads = CommitThreads()
    with pytest.raises(MemoryError, match="none left"):
        threads(fail).result(PATIENCE)
    assert threads(lambda: 1).result(PATIENCE) == 1
