"""A broker that somebody else runs: it can be used, and nothing more."""

from __future__ import annotations

from typing import NoReturn

from stream_fs.broker.errors import BrokerNotOurs
from stream_fs.broker.interface import PLAINTEXT, Broker


class ExternalBroker(Broker):
    """The broker at an address that was given from outside."""

    def __init__(self, bootstrap: str, source: str) -> None:
        """``source`` names where the address comes from, for messages."""
        self._bootstrap = bootstrap
        self._source = source

    def address(self, listener: str) -> str:
        """The address as it was given; other listeners are unknown here."""
        if listener != PLAINTEXT:
            self._refuse(f"the address of its listener {listener} is not known")
        return self._bootstrap

    def start(self) -> None:
        """Refused."""
        self._refuse("it cannot be started here")

    def stop(self) -> None:
        """Refused."""
        self._refuse("it cannot be stopped here")

    def kill(self) -> None:
        """Refused."""
        self._refuse("it cannot be killed here")

    def log_tail(self, lines: int = 40) -> str:  # noqa: ARG002  # there is no log to take lines of
        """Empty: its log is elsewhere."""
        return ""

    def _refuse(self, what: str) -> NoReturn:
        raise BrokerNotOurs(
            f"the broker at {self._bootstrap} comes from {self._source}: {what}; "
            f"unset {self._source} to run a broker of one's own"
        )
