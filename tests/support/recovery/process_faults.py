"""What happens to a process from within, in a moment of its life or all the time."""

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
Happening = Literal[Signal, "MEMORY", "HOG"]
"""A signal; one allocation that fails; or no memory at all any more."""

SPARE_BYTES = 1 << 20
"""Beyond what it has; then it gets no more."""
JUMP_CHUNKS = 3
"""Between two jumps of the clock."""

_held: list[bytearray] = []


def happen(what: Happening) -> None:
    """Now, to this process."""
    if what == "STOP":
        stand_still()
    elif what in get_args(Signal):
        os.kill(os.getpid(), signal.Signals[f"SIG{what}"])
    elif what == "MEMORY":
        raise MemoryError
    else:
        take_all_memory()


def stand_still() -> None:
    """Until somebody lets this process go on.

    The signal goes to the calling thread, which is stopped at once. Sent to the process, it would
    wait for the first thread, and on a busy machine the calling one would go on meanwhile.
    """
    signal.pthread_kill(threading.get_ident(), signal.SIGSTOP)


def take_all_memory() -> None:
    """Leave nothing of what the process may have, as a neighbour in its container would."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    most = pages * resource.getpagesize() + SPARE_BYTES
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    size = SPARE_BYTES
    while size >= 64:
        try:
            _held.append(bytearray(size))
        except MemoryError:
            size //= 2


def slowness(seconds: float) -> Callable[[str], None]:
    """Every update takes so much longer."""

    def step(name: str) -> None:
        if name == "updated":
            time.sleep(seconds)

    return step


def jumping_clock(seconds: float) -> Callable[[str], None]:
    """The time of day jumps: ahead, back, behind, back, …; records are stamped with it.

    The Kafka client asks the system for the time by itself: in its place, the producer is told.
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
