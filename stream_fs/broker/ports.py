"""Ports for a broker that keeps them while it is down."""

from __future__ import annotations

import random
import socket
from typing import Final

_CANDIDATES: Final = range(20_000, 30_000)
"""Below the ports that systems hand out to outgoing connections: otherwise a client that keeps
trying to reconnect could be given the port of the very broker that is to come back."""


def free_ports(count: int) -> list[int]:
    """``count`` different ports on which nothing listens now."""
    found: list[int] = []
    for port in random.SystemRandom().sample(_CANDIDATES, len(_CANDIDATES)):
        if len(found) == count:
            break
        if is_free(port):
            found.append(port)
    return found


def is_free(port: int) -> bool:
    """Whether nothing listens on the port now."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("", port))
        except OSError:
            return False
    return True
