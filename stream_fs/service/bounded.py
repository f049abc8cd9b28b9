"""Reading from a client that may send too much, or too slowly."""

from __future__ import annotations

import io
import socket
import time
from typing import Any


class TooMuch(Exception):
    """The request is larger than anything we would answer."""


class Bounded(io.RawIOBase):
    """What a socket receives, up to a number of bytes and a moment."""

    def __init__(self, connection: socket.socket, most_bytes: int, seconds: float) -> None:
        self._connection = connection
        self._left = most_bytes
        self._until = time.monotonic() + seconds

    def readable(self) -> bool:
        """It is."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Receive; raises `TooMuch` and `TimeoutError` at the bounds."""
        seconds = self._until - time.monotonic()
        if seconds <= 0:
            raise TimeoutError
        if not self._left:
            raise TooMuch
        self._connection.settimeout(seconds)
        count = self._connection.recv_into(memoryview(buffer)[: self._left])
        self._left -= count
        return count
