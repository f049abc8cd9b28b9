"""Faults that a process injects into itself, at one step or all the time."""

from __future__ import annotations

import os
import resource
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal, get_args

from confluent_kafka import Producer

from stream_fs.kafka import clients

Signal = Literal["KILL", "TERM", "STOP"]
FaultKind = Literal[Signal, "MEMORY_ERROR", "NO_MEMORY"]
"""A signal, one allocation that fails, or no memory left."""

SPARE_BYTES = 1 << 20
"""Memory that the process may still allocate before it has none left."""
JUMP_CHUNKS = 3
"""Chunks between two jumps of the clock."""

_held: list[bytearray] = []


def inject(kind: FaultKind) -> None:
    """Inject a fault into this process, at once."""
    if kind == "STOP":
        stop_self()
    elif kind in get_args(Signal):
        os.kill(os.getpid(), signal.Signals[f"SIG{kind}"])
    elif kind == "MEMORY_ERROR":
        raise MemoryError
    else:
        exhaust_memory()


def stop_self() -> None:
    """Stop this process until SIGCONT.

    The signal goes to the calling thread, which is stopped at once. Sent to the process, it would
    wait for the first thread, and on a busy machine the calling one would go on meanwhile.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def exhaust_memory() -> None:
    """Use up all memory, as another process in the same container might."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    size = SPARE_BYTES
    while size >= 64:
        try:
            _held.append(bytearray(size))
        except MemoryError:
            size //= 2


def slow_updates(seconds: float) -> Callable[[str], None]:
    """A crash hook that adds so many seconds to every update."""

    def step(name: str) -> None:
        if name == "updated":
            time.sleep(seconds)

    return step


def jumping_clock(seconds: float) -> Callable[[str], None]:
    """The time of day jumps: ahead, back, behind, back, …; records are stamped with it.

    The Kafka client reads the system clock itself: the producer gets explicit timestamps instead.
    """
    right, ahead = time.time, [0.0, seconds, 0.0, -seconds]
    chunks = 0

    def wrong() -> float:
        return right() + ahead[chunks // JUMP_CHUNKS % len(ahead)]

    class WrongProducer(Producer):
        def produce(self, *arguments: Any, **named: Any) -> None:
            named["timestamp"] = round(wrong() * 1000)
            super().produce(*arguments, **named)

    time.time = wrong
    vars(clients)["Producer"] = WrongProducer

    def step(name: str) -> None:
        nonlocal chunks
        chunks += name == "updated"

    return step
