from __future__ import annotations

import signal
from collections.abc import Iterator

import pytest

from stream_fs.cli.interrupts import interrupts


@pytest.fixture(autouse=True)
def ordinary() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def test_the_first_is_heard_where_it_is_asked_for() -> None:
    with interrupts() as check:
        check()
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            check()
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def test_the_second_is_heard_at_once() -> None:
    with interrupts():
        signal.raise_signal(signal.SIGINT)
        with pytest.raises(KeyboardInterrupt):
            signal.raise_signal(signal.SIGINT)


def test_where_interrupts_are_ignored_they_stay_so() -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with interrupts() as check:
        signal.raise_signal(signal.SIGINT)
        check()
