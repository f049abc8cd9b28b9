"""Signals that ask a command to end, heard at places that are safe for it.

An interrupt that falls into a callback of the Kafka client is lost, or turns up as another error.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def asked_to_stop(*signals: signal.Signals) -> Iterator[Callable[[], bool]]:
    """Within it, the first of these signals only asks; the next one does what it did before."""
    asked: list[int] = []
    before = {number: signal.getsignal(number) for number in signals}

    def put_back() -> None:
        for number, handler in before.items():
            signal.signal(number, handler)

    def ask(number: int, _: FrameType | None) -> None:
        asked.append(number)
        put_back()

    for number in before:
        signal.signal(number, ask)
    try:
        yield lambda: bool(asked)
    finally:
        put_back()


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """Within it, the first Ctrl-C only raises where the function that it gives is called.

    A second one raises at once, as ever. Where they are ignored, in the background, they stay so.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    with asked_to_stop(*(() if ignored else (signal.SIGINT,))) as asked:

        def check() -> None:
            if asked():
                raise KeyboardInterrupt

        yield check
