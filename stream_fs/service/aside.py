"""Calls that are made aside, each in a thread of its own: however many hang, the others go on."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any


def aside(call: Callable[[], Any]) -> Future[Any]:
    """Have something called; see `stream_fs.pipeline.transaction.Aside`.

    There are no more such calls than tasks, and what they do takes far longer than to start a
    thread. A daemon: a call that hangs must not keep the process from ending; whatever is not
    committed then will be read again.
    """
    future: Future[Any] = Future()
    thread = threading.Thread(target=_make, args=(future, call), name="committing", daemon=True)
    thread.start()
    return future


def _make(future: Future[Any], call: Callable[[], Any]) -> None:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001  # raised where the result is asked for
        future.set_exception(error)
    else:
        future.set_result(result)
