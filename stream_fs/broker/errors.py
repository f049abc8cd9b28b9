"""What can go wrong with a development broker."""

from __future__ import annotations

from stream_fs.errors import StreamFsError


class BrokerUnavailable(StreamFsError):
    """No broker can be had here, or it did not start; the message says what is missing."""


class BrokerNotOurs(StreamFsError):
    """The broker is run by somebody else: it cannot be stopped, started or configured here."""
