"""SIGTERM and SIGINT, handled immediately by a thread.

Python runs its own handlers between two instructions of the main thread, and so only after a call
of the Kafka client has returned.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from types import FrameType
from typing import Any, Final, Self

from stream_fs.service.exit_codes import ExitCode
from stream_fs.service.observability.logging import ROOT

_LOGGER: Final = logging.getLogger(ROOT)
_HANDLED: Final = (signal.SIGTERM, signal.SIGINT)


class SignalHandler:
    """Turns signals into a request to stop, within `with`.

    Before `begin` a signal ends the process immediately, with exit code 0. Afterwards the first
    signal requests a graceful shutdown, and the second one ends the process immediately.
    """

    def __init__(self) -> None:
        self._begun = False
        self._stop_requested = False
        self._thread = threading.Thread(target=self._listen, name="signals", daemon=True)

    def __enter__(self) -> Self:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._before: dict[int, Any] = {
            number: signal.signal(number, self._handle) for number in _HANDLED
        }
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(self._wakeup)
        os.close(self._writing)
        self._thread.join()
        os.close(self._reading)

    def begin(self) -> None:
        """From now on, the first signal requests a graceful shutdown."""
        self._begun = True

    @property
    def stop_requested(self) -> bool:
        """Whether a signal has requested a graceful shutdown."""
        return self._stop_requested

    def _handle(self, _: int, __: FrameType | None) -> None:
        """Python's own handler, which sets the flag before the main thread's next instruction."""
        self._stop_requested = True

    def _listen(self) -> None:
        received = False
        while number := os.read(self._reading, 1):
            if number[0] not in _HANDLED:
                continue
            if not self._begun:
                _LOGGER.info("stopped before startup was complete")
                os._exit(ExitCode.OK)
            if received:
                os._exit(128 + number[0])
            received = self._stop_requested = True
