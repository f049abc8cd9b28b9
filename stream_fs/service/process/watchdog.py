"""A hung client must not look alive: a thread that ends the process when the loop stands still."""

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

    And that no `watched` call takes longer from one `progress` to the next, whatever the loop does
    meanwhile. Each call of the client begins with `progress` and has a time limit of its own, which
    is shorter; one that outlives `limit` ignores it. The process is ended at once, without
    clean-up, which may hang as well: nothing is lost, because what is not committed is read again.

    Where the process as a whole stood still (SIGSTOP, a paused container), the loop is not to
    blame, and gets the whole time again.
    """

    def __init__(
        self,
        limit: float,
        clock: Callable[[], float],
        end: Callable[[], None] | None = None,
    ) -> None:
        """`end` ends the process; by default it tells where every thread stands first."""
        self._limit = limit
        self._clock = clock
        self._end = end or self._exit
        self._last = self._earliest = clock()
        self._calls: dict[int, float] = {}
        """By thread: when its watched call began, or made progress last."""
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="watchdog", daemon=True)

    @property
    def silence(self) -> float:
        """Seconds since the last beat, or since a watched call made progress, if that is longer."""
        oldest = min((self._last, *self._calls.values()))  # a copy: calls come and go in threads
        return self._clock() - max(oldest, self._earliest)

    @property
    def limit(self) -> float:
        """Seconds of silence that are too many."""
        return self._limit

    def start(self) -> None:
        """Begin to watch."""
        self.beat()
        self._thread.start()

    def beat(self) -> None:
        """The loop makes progress."""
        self._last = self._clock()

    def progress(self) -> None:
        """The calling thread makes progress: with its watched call or, without one, as the loop."""
        thread = threading.get_ident()
        if thread in self._calls:
            self._calls[thread] = self._clock()
        else:
            self.beat()

    def watched(self, call: Callable[[], Result]) -> Callable[[], Result]:
        """The call, which must make progress within the limit as well, in any thread."""

        def made() -> Result:
            thread = threading.get_ident()
            self._calls[thread] = self._clock()
            try:
                return call()
            finally:
                del self._calls[thread]

        return made

    def stop(self) -> None:
        """Watch no more."""
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
            elif self.silence > self._limit:
                self._end()
                return

    def _exit(self) -> None:
        _LOGGER.critical(
            "nothing has moved for %.0f s: a client call hangs; ending the process",
            self.silence,
        )
        faulthandler.dump_traceback(sys.stderr)
        os._exit(ExitCode.WATCHDOG)
