"""A watchdog thread that ends the process when the loop or a client call hangs."""

from __future__ import annotations

import faulthandler
import logging
import os
import sys
import threading
from collections.abc import Callable
from typing import TypeVar

from stream_fs.service.exit_codes import ExitCode

_LOGGER = logging.getLogger(__name__)
Result = TypeVar("Result")


class Watchdog:
    """Expects `beat` at least every `limit` seconds between `start` and `stop`.

    Also expects every `watched` call to report `progress` at least that often, whatever the loop
    does meanwhile. Each call of the Kafka client starts with `progress` and has a shorter timeout
    of its own; one that takes longer than `limit` ignores it. The process then exits immediately,
    without clean-up, which may hang as well. Nothing is lost: what is not committed is read again.

    If the whole process was suspended (SIGSTOP, a paused container), the limit starts anew.
    """

    def __init__(
        self,
        limit: float,
        clock: Callable[[], float],
        end: Callable[[], None] | None = None,
    ) -> None:
        """`end` ends the process; by default it dumps the stack of every thread first."""
        self._limit = limit
        self._clock = clock
        self._end = end or self._exit
        self._last = self._earliest = clock()
        self._calls: dict[int, float] = {}
        """By thread: when its watched call started or last reported progress."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    @property
    def seconds_since_progress(self) -> float:
        """Seconds since the last beat, or since the last progress of a watched call, if longer."""
        oldest = min((self._last, *self._calls.values()))  # a copy: calls come and go in threads
        return self._clock() - max(oldest, self._earliest)

    @property
    def limit(self) -> float:
        """Seconds without progress after which the process exits."""
        return self._limit

    def start(self) -> None:
        """Start the thread."""
        self.beat()
        self._thread.start()

    def beat(self) -> None:
        """Report progress of the loop."""
        self._last = self._clock()

    def progress(self) -> None:
        """Report progress of the calling thread's watched call or, without one, of the loop."""
        thread = threading.get_ident()
        if thread in self._calls:
            self._calls[thread] = self._clock()
        else:
            self.beat()

    def watched(self, call: Callable[[], Result]) -> Callable[[], Result]:
        """The call, expected to report progress within the limit, in whichever thread it runs."""

        def made() -> Result:
            thread = threading.get_ident()
            self._calls[thread] = self._clock()
            try:
                return call()
            finally:
                del self._calls[thread]

        return made

    def stop(self) -> None:
        """Stop the thread."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _watch(self) -> None:
        looked = self._clock()
        while not self._stopped.wait(min(1.0, self._limit / 4)):
            now = self._clock()
            overslept, looked = now - looked > self._limit / 2, now
            if overslept:
                self._earliest = now
            elif self.seconds_since_progress > self._limit:
                self._end()
                return

    def _exit(self) -> None:
        _LOGGER.critical(
            "no progress for %.0f s: a client call hangs; exiting",
            self.seconds_since_progress,
        )
        faulthandler.dump_traceback(sys.stderr)
        os._exit(ExitCode.WATCHDOG)
