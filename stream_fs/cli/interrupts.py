"""Signals that request a command to stop, checked at safe points.

An interrupt that is raised in a callback of the Kafka client is lost or becomes another error.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def stop_requests(*signals: signal.Signals) -> Iterator[Callable[[], bool]]:
    """A function that returns whether one of the signals has arrived.

    Only the first signal is intercepted; then the previous handlers are restored.
    """
    received: list[int] = []
    previous = {number: signal.getsignal(number) for number in signals}

    def restore() -> None:
        for number, handler in previous.items():
            signal.signal(number, handler)

    def handle(number: int, _: FrameType | None) -> None:
        received.append(number)
        restore()

    for number in previous:
        signal.signal(number, handle)
    try:
        yield lambda: bool(received)
    finally:
        restore()


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """A function that raises `KeyboardInterrupt` if Ctrl-C has been pressed.

    A second Ctrl-C raises immediately. If SIGINT is ignored, as in the background, it stays so.
    """
    ignored = signal.getsignal(signal.SIGINT) is signal.SIG_IGN
    with stop_requests(*(() if ignored else (signal.SIGINT,))) as requested:

        def check() -> None:
            if requested():
                raise KeyboardInterrupt

        yield check
