"""SIGTERM and SIGINT, heard at once: by a thread, for a call of the Kafka client may take its time.

Python runs its handlers between two instructions of the main thread, and so only after such a call.
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
_ASKING: Final = (signal.SIGTERM, signal.SIGINT)


class SignalHandler:
    """Within `with`, what a signal means: the end, or that one is asked to come to an end.

    Until `begin` there is nothing to bring to an end: a signal ends the process at once, in order.
    From then on the first one asks, and the second one ends the process at once.
    """

    def __init__(self) -> None:
        self._begun = False
        self._asked = False
        self._thread = threading.Thread(target=self._listen, name="signals", daemon=True)

    def __enter__(self) -> Self:
        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._wakeup = signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        self._before: dict[int, Any] = {
            number: signal.signal(number, self._note) for number in _ASKING
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
        """From now on there is something to bring to an end."""
        self._begun = True

    @property
    def asked(self) -> bool:
        """Whether to stop."""
        return self._asked

    def _note(self, _: int, __: FrameType | None) -> None:
        """Python's own handler: before the next instruction, where no call is in its way."""
        self._asked = True

    def _listen(self) -> None:
        heard = False
        while number := os.read(self._reading, 1):
            if number[0] not in _ASKING:
                continue
            if not self._begun:
                _LOGGER.info("stopped before it had begun")
                os._exit(ExitCode.OK)
            if heard:
                os._exit(128 + number[0])
            heard = self._asked = True
