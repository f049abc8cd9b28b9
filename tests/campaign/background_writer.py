"""Writes records at a constant rate during faults."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self

from confluent_kafka import KafkaException

from tests.support.recovery.content import Source, chunks_in

OUTAGE_SECONDS = 300.0
"""The longest outage of a broker, on a busy machine."""


class BackgroundWriter:
    """A thread that writes so many good records a second to each partition, bad ones among them."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, rate: int) -> None:
        self._sources = [
            Source(bootstrap, topic, number, seed=number) for number in range(partitions)
        ]
        self._rate = rate
        self._written = 0
        self._stopped = threading.Event()
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._write, name="writer", daemon=True)

    @property
    def chunks(self) -> int:
        """Full chunks of all partitions together, after its end."""
        return len(self._sources) * chunks_in(self._written)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()
        if self._error is not None and error is None:
            raise self._error

    def _write(self) -> None:
        """Write the same count to every partition; records due during an outage follow after it."""
        began = time.monotonic()
        try:
            while not self._stopped.wait(0.5):
                due = round((time.monotonic() - began) * self._rate) - self._written
                for source in self._sources:
                    source.write(due, OUTAGE_SECONDS)
                self._written += due
        except (KafkaException, TimeoutError) as error:  # raised in __exit__
            self._error = error
