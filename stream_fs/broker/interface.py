"""What every kind of development broker offers."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

PLAINTEXT: Final = "PLAINTEXT"
"""The listener that every broker has; `Broker.bootstrap` is its address."""


class Broker(ABC):
    """A broker that answers, until it is taken away."""

    @property
    def bootstrap(self) -> str:
        """``host:port`` of the plain listener, for ``bootstrap.servers``."""
        return self.address(PLAINTEXT)

    @abstractmethod
    def address(self, listener: str) -> str:
        """``host:port`` of a listener by its name; the same as long as the broker exists."""

    @abstractmethod
    def start(self) -> None:
        """Bring the broker back, on the same ports and data; return when it answers.

        Raises `BrokerUnavailable`, with the end of the broker's log, when it does not.
        """

    @abstractmethod
    def stop(self) -> None:
        """Shut the broker down in order; nothing happens when it does not run."""

    @abstractmethod
    def kill(self) -> None:
        """Take the broker away at once, as a power failure would."""

    @abstractmethod
    def log_tail(self, lines: int = 40) -> str:
        """The last lines of the broker's log; empty when there is none to read."""
