"""Executors that run their jobs later, as another thread might, but in a fixed order."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


class DelayedFuture(Future[Any]):
    """Runs its job after `done` was called so many times, or when a long wait for it begins."""

    def __init__(self, job: Callable[[], Any], calls: int) -> None:
        super().__init__()
        self._job = job
        self._left = calls

    def done(self) -> bool:
        self._left -= 1
        if self._left < 0:
            self._run()
        return super().done()

    def exception(self, timeout: float | None = None) -> BaseException | None:
        if timeout is None or timeout > 1:  # seconds: a graceful shutdown
            self._run()
        return super().exception(0)

    def _run(self) -> None:
        if super().done():
            return
        try:
            self.set_result(self._job())
        except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
            self.set_exception(error)


def run_slowly(job: Callable[[], Any]) -> DelayedFuture:
    """An executor whose jobs take a few steps of the loop."""
    return DelayedFuture(job, 6)


def never_run(job: Callable[[], Any]) -> DelayedFuture:
    """An executor whose jobs run only during a graceful shutdown."""
    return DelayedFuture(job, 1_000_000)
