"""Waiting for what a broker does by itself, and no longer than reason allows."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from stream_fs.errors import RetriableError
from stream_fs.pipeline.ports import Input, Partition, Publisher, StateLog, StoredRecord
from stream_fs.records import Message
from tests.contracts.backend import Backend, Published

PATIENCE_SECONDS = 60.0
"""When to give up; far more than anything takes, also on a busy machine."""


def until(condition: Callable[[], bool], what: str) -> None:
    """Call until it is true; every call is expected to wait a little or to make progress."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(what)


def owner(publisher: Publisher) -> Publisher:
    """The publisher, when it has taken over."""

    def taken() -> bool:
        try:
            return publisher.acquire()
        except RetriableError:  # it takes long; the call may be made again
            return False

    until(taken, "the publisher does not take over")
    return publisher


def published(backend: Backend, topic: str, count: int, partition: int = 0) -> list[Published]:
    """All committed records of a partition, when there are so many.

    A broker may answer a commit before its readers see it.
    """
    until(
        lambda: len(backend.published(topic, partition)) >= count,
        f"{count} records are not published in {topic}/{partition}",
    )
    return backend.published(topic, partition)


def everything(log: StateLog, start: int = 0, end: int | None = None) -> list[StoredRecord]:
    """All committed records of the log, or of a part of it."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    records = []
    for record in log.scan(start, log.end() if end is None else end):
        if record is not None:
            records.append(record)
        elif time.monotonic() > deadline:
            raise TimeoutError(f"the scan does not end; it has found {records}")
    return records


class Member:
    """A member of the group that keeps what it is told and what it is given."""

    def __init__(self) -> None:
        self.events: list[tuple[str, tuple[Partition, ...]]] = []
        self.mine: set[Partition] = set()
        self.messages: dict[Partition, list[Message]] = {}

    def assigned(self, partitions: Sequence[Partition]) -> None:
        self.events.append(("assigned", tuple(partitions)))
        assert self.mine.isdisjoint(partitions)
        self.mine.update(partitions)

    def revoked(self, partitions: Sequence[Partition]) -> None:
        self.events.append(("revoked", tuple(partitions)))
        assert self.mine.issuperset(partitions)
        self.mine.difference_update(partitions)

    def lost(self, partitions: Sequence[Partition]) -> None:
        self.events.append(("lost", tuple(partitions)))
        self.mine.difference_update(partitions)

    def poll(self, source: Input, timeout: float = 0.05) -> None:
        for partition, messages in source.poll(timeout).items():
            assert partition in self.mine, f"{partition} is not ours"
            assert messages, f"an empty batch of {partition}"
            self.messages.setdefault(partition, []).extend(messages)

    def polls(self, source: Input, condition: Callable[[], bool], what: str) -> None:
        """Poll until something is true."""

        def polled() -> bool:
            self.poll(source)
            return condition()

        until(polled, f"waiting for {what}: {self.events}")

    def holds(self, source: Input, partitions: set[Partition]) -> None:
        """Poll until exactly these partitions are ours."""
        self.polls(source, lambda: self.mine == partitions, f"to hold {partitions}")

    def receives(self, source: Input, partition: Partition, count: int) -> list[Message]:
        """Poll until so many messages of a partition are here; all of them."""
        messages = self.messages.setdefault(partition, [])
        self.polls(source, lambda: len(messages) >= count, f"{count} messages of {partition}")
        return messages

    def offsets(self, partition: Partition) -> list[int]:
        return [message.offset for message in self.messages.get(partition, [])]
