"""Threads for the blocking calls of transactions: one that hangs does not block the others."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeAlias

_Jobs: TypeAlias = "SimpleQueue[tuple[Future[Any], Callable[[], Any]]]"


class CommitThreads:
    """Runs calls in threads; see `stream_fs.pipeline.transaction.Executor`.

    A thread runs one call at a time and is kept for the next one, since starting a thread may hang
    in a process that is short of memory. There are as many threads as there were concurrent calls,
    so at most one per partition. They are daemons, so that a call that hangs does not keep the
    process from exiting; what is not committed then is read again.
    """

    def __init__(self) -> None:
        self._idle: deque[_Jobs] = deque([self._thread()])

    def __call__(self, call: Callable[[], Any]) -> Future[Any]:
        """Submit a call."""
        future: Future[Any] = Future()
        jobs = self._idle.pop() if self._idle else self._thread()
        jobs.put((future, call))
        return future

    def _thread(self) -> _Jobs:
        jobs: _Jobs = SimpleQueue()
        threading.Thread(target=self._serve, args=(jobs,), name="committing", daemon=True).start()
        return jobs

    def _serve(self, jobs: _Jobs) -> None:
        while True:
            future, call = jobs.get()
            try:
                result = call()
            except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
                self._idle.append(jobs)  # first: a callback may submit the next call
                future.set_exception(error)
            else:
                self._idle.append(jobs)
                future.set_result(result)
            del future, call  # they hold the records of a chunk
