"""Ctrl-C, heard at places that are safe for it.

An interrupt that falls into a callback of the Kafka client is lost, or turns up as another error.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interrupts() -> Iterator[Callable[[], None]]:
    """Within it, the first Ctrl-C only raises where the function that it gives is called.

    A second one raises at once, as ever.
    """
    asked = False

    def note(number: int, _: FrameType | None) -> None:
        nonlocal asked
        asked = True
        signal.signal(number, signal.default_int_handler)

    def check() -> None:
        if asked:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:  # not where interrupts are ignored, in the background
        signal.signal(signal.SIGINT, note)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)
