"""Calls that are made aside, in threads of their own: however many hang, the others go on."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from queue import SimpleQueue
from typing import Any, TypeAlias

_Jobs: TypeAlias = "SimpleQueue[tuple[Future[Any], Callable[[], Any]]]"


class CommitThreads:
    """Has things called; see `stream_fs.pipeline.transaction.CommitThreads`.

    A thread makes one call at a time and stays for the next one, since a process that lacks memory
    may hang where it starts a thread. There are as many as there were calls at a time, so no more
    than tasks. They are daemons: a call that hangs must not keep the process from ending; whatever
    is not committed then will be read again.
    """

    def __init__(self) -> None:
        self._idle: deque[_Jobs] = deque([self._thread()])

    def __call__(self, call: Callable[[], Any]) -> Future[Any]:
        """Have something called."""
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
                self._idle.append(jobs)  # first: whoever is told may call again at once
                future.set_exception(error)
            else:
                self._idle.append(jobs)
                future.set_result(result)
            del future, call  # and with them the records of a chunk
