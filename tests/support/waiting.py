"""Waiting for what a broker does asynchronously, with a timeout."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from stream_fs.errors import RetriableError
from stream_fs.pipeline.ports import Input, Partition, Publisher, StateLog, StoredRecord
from stream_fs.records import Message
from tests.contracts.backend import Backend, Published

TIMEOUT_SECONDS = 60.0
"""Far longer than anything takes, also on a busy machine."""


def until(condition: Callable[[], bool], what: str) -> None:
    """Call until it returns true; every call should wait a little or make progress."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)


def owner(publisher: Publisher) -> Publisher:
    """The publisher, once it is acquired."""

    def acquired() -> bool:
        try:
            return publisher.acquire()
        except RetriableError:  # it takes long; the call may be repeated
            return False

    until(acquired, "the publisher is acquired")
    return publisher


def published(backend: Backend, topic: str, count: int, partition: int = 0) -> list[Published]:
    """All committed records of a partition, once there are `count`.

    A broker may answer a commit before readers see it.
    """
    until(
        lambda: len(backend.published(topic, partition)) >= count,
        f"{count} records are published in {topic}/{partition}",
    )
    return backend.published(topic, partition)


def everything(log: StateLog, start: int = 0, end: int | None = None) -> list[StoredRecord]:
    """All committed records of a log, or of a part of it."""
    deadline = time.monotonic() + TIMEOUT_SECONDS
    records = []
    for record in log.scan(start, log.end() if end is None else end):
        if record is not None:
            records.append(record)
        elif time.monotonic() > deadline:
            raise TimeoutError(f"the scan does not end; it has found {records}")
    return records


class Member:
    """A group member that records events and messages."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[Partition, ...]]] = []
        self.assignment: set[Partition] = set()
        self.messages: dict[Partition, list[Message]] = {}

    def assigned(self, partitions: Sequence[Partition]) -> None:
        self.events.append(("assigned", tuple(partitions)))
        assert self.assignment.isdisjoint(partitions)
        self.assignment.update(partitions)

    def revoked(self, partitions: Sequence[Partition]) -> None:
        self.events.append(("revoked", tuple(partitions)))
        assert self.assignment.issuperset(partitions)
        self.assignment.difference_update(partitions)

    def lost(self, partitions: Sequence[Partition]) -> None:
        self.events.append(("lost", tuple(partitions)))
        self.assignment.difference_update(partitions)

    def poll(self, source: Input, timeout: float = 0.05) -> None:
        for partition, messages in source.poll(timeout).items():
            assert partition in self.assignment, f"{partition} is not assigned"
            assert messages, f"an empty batch of {partition}"
            self.messages.setdefault(partition, []).extend(messages)

    def polls(self, source: Input, condition: Callable[[], bool], what: str) -> None:
        """Poll until a condition holds."""

        def polled() -> bool:
            self.poll(source)
            return condition()

        until(polled, f"waiting for {what}: {self.events}")

    def holds(self, source: Input, partitions: set[Partition]) -> None:
        """Poll until exactly these partitions are assigned."""
        self.polls(source, lambda: self.assignment == partitions, f"to hold {partitions}")

    def receives(self, source: Input, partition: Partition, count: int) -> list[Message]:
        """Poll until `count` messages of a partition have arrived; returns all of them."""
        messages = self.messages.setdefault(partition, [])
        self.polls(source, lambda: len(messages) >= count, f"{count} messages of {partition}")
        return messages

    def offsets(self, partition: Partition) -> list[int]:
        return [message.offset for message in self.messages.get(partition, [])]
