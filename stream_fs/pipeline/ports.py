"""The interface of the pipeline to brokers and files, as small protocols.

`stream_fs.kafka` implements them on a broker, `stream_fs.replay` on files, and `tests.support` in
memory for tests. One contract suite (tests/contracts) checks all of them. Every call is bounded in
time and raises only subclasses of `TransportError`:

    RetriableError     nothing happened, except in `commit`, whose outcome is unknown; the same call
                       may be repeated
    AbortableError     the transaction must be aborted; its content may be sent again in a new one
    FencedError        the publisher no longer owns its transactional id and can publish nothing
                       more; see `FencedError.outcome_unknown`
    FatalError         the client cannot continue (authorisation, …); the process should end
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from stream_fs.records import Message


class Partition(NamedTuple):
    """A partition of an input topic."""

    topic: str
    number: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.number}"

    @property
    def flags(self) -> str:
        """The flags of `stream-fs checkpoint` that select it."""
        return f"--topic {self.topic} --partition {self.number}"


@dataclass(frozen=True, slots=True)
class OutgoingRecord:
    """A record to publish; without a `partition` its key decides."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...] = ()
    partition: int | None = None


@dataclass(frozen=True, slots=True)
class StoredRecord:
    """A committed record of a state partition."""

    offset: int
    key: bytes
    value: bytes | None


class Publisher(Protocol):
    """The transactional publisher of one owner: of an input partition, or of the merge."""

    def acquire(self) -> bool:
        """Become the owner: fence the previous one, and abort its open transaction.

        Returns whether that is done; if not, it has to be called again (each call is short). Raises
        `RetriableError` from time to time if it takes long, and may be called again then.
        """
        ...

    def begin(self) -> None:
        """Open a transaction."""
        ...

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        """Send within the open transaction, and wait; the offsets of the records."""
        ...

    def commit(self) -> None:
        """Commit: everything since `begin` becomes visible at once, and nothing of it before.

        After a `RetriableError` the outcome is open, and `commit` may be called again.
        """
        ...

    def abort(self) -> None:
        """Abort the open transaction, if there is one."""
        ...

    def close(self) -> None:
        """Release resources; an open transaction is not committed."""
        ...


class StateLog(Protocol):
    """The committed records of one partition of the state topic, read by position."""

    def end(self) -> int:
        """The offset behind the last record, open and aborted transactions included."""
        ...

    def start(self) -> int:
        """The offset of the first record that may still be there."""
        ...

    def scan(self, start: int, end: int) -> Iterator[StoredRecord | None]:
        """The committed records in [start, end), in order; None while there is nothing to read.

        Ends only when every transaction below `end` has ended, so that a commit behind an open
        transaction is not missed.
        """
        ...

    def close(self) -> None:
        """Release resources."""
        ...


class StateLogReader(Protocol):
    """The state partitions of some input topics, read one after the other by one client."""

    def ends(self, topics: Sequence[str]) -> Mapping[Partition, int]:
        """By input partition, the end of its state; see `StateLog.end`.

        Input partitions without a state partition are left out: partitions may be added at any
        time, to the state topic later than to the input topic.
        """
        ...

    def log(self, partition: Partition) -> StateLog:
        """The state of one partition, to be closed before the next one is opened.

        Its scans wait only briefly, and also yield None after every few records.
        """
        ...

    def close(self) -> None:
        """Release resources."""
        ...


class Assignment(Protocol):
    """Rebalance callbacks of an `Input`, called from within `poll` and `close`.

    They must be short, except for `revoked`, which may finish commits.
    """

    def assigned(self, partitions: Sequence[Partition]) -> None:
        """These partitions, possibly none, are assigned; they are paused until `Input.resume`."""
        ...

    def revoked(self, partitions: Sequence[Partition]) -> None:
        """These partitions may be assigned to another member when this call returns."""
        ...

    def lost(self, partitions: Sequence[Partition]) -> None:
        """These partitions may be assigned to another member already."""
        ...


class Input(Protocol):
    """The input topics, as a member of the consumer group."""

    def poll(
        self, timeout: float, max_records: int | None = None
    ) -> Mapping[Partition, Sequence[Message]]:
        """Messages by partition, in the order of their offsets; waits at most `timeout` seconds.

        Only partitions that were resumed deliver, from the offset given then. `max_records` limits
        the messages of each partition; the default is a few hundred.
        """
        ...

    def resume(self, partition: Partition, offset: int) -> None:
        """Deliver this partition, from this offset on."""
        ...

    def pause(self, partition: Partition) -> None:
        """Deliver nothing of this partition until it is resumed."""
        ...

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The first offset that still exists, and the one behind the last."""
        ...

    def unread(self, partition: Partition, position: int) -> int | None:
        """Number of offsets from `position` on that can be delivered; None if not known yet.

        `position` is the offset behind the last delivered message. The number is 0 if everything
        was delivered that can be: not records of open transactions, aborted records and transaction
        markers. If there is more to deliver, such offsets may be counted with it.
        """
        ...

    def connection_error(self) -> str | None:
        """Why there is no connection; None if there is one."""
        ...

    def commit_group_offset(self, offsets: Mapping[Partition, int]) -> None:
        """Commit offsets of the group, for lag tools; advisory, and without waiting."""
        ...

    def group_offset(self, partition: Partition) -> int | None:
        """The offset that the group has committed, if any."""
        ...

    def close(self) -> None:
        """Leave the group; `revoked` is called for partitions that are still assigned."""
        ...


class Transport(Protocol):
    """A broker, or what takes its place."""

    def input(self, topics: Sequence[str], assignment: Assignment) -> Input:
        """Join the group and subscribe."""
        ...

    def publisher(self, partition: Partition, *, legacy: bool = False) -> Publisher:
        """A publisher for this input partition; see `Publisher.acquire`.

        Its transactional id contains the owner of the state. That of a `legacy` publisher contains
        the group alone, and fences the releases that use it.
        """
        ...

    def state_log(self, partition: Partition) -> StateLog:
        """The state of this input partition."""
        ...

    def group_offset(self, partition: Partition) -> int | None:
        """The offset that the group has committed, if any; works without being a member."""
        ...

    def merge_publisher(self, *, legacy: bool = False) -> Publisher:
        """The publisher of the stream's merged rankings, of which there is one in the group."""
        ...

    def state_log_reader(self) -> StateLogReader:
        """A reader for the states of all input partitions, to be used repeatedly."""
        ...

    def input_log(self, partition: Partition) -> StateLog:
        """The input partition itself, read by position, outside of the group."""
        ...
