"""What the pipeline needs of the outside world, as small protocols.

`stream_fs.kafka` implements them on a broker, `stream_fs.replay` on files, and
`tests.support` in memory for tests; one contract suite (tests/contracts) holds them to
what is written here. Every call is bounded in time and raises only errors of the tree below
`TransportError`:

    RetriableError     nothing happened; the same call may be made again
    AbortableError     the transaction must be aborted; its content may be sent again in a new one
    FencedError        somebody else owns the partition now; nothing more can be published
    FatalError         this client cannot go on (authorisation, …); the process should end
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
    """A record to be published; `partition` None lets the key decide."""

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
        """Become the owner: fence whoever was it before, and end what it left open.

        Returns whether it is done; False asks to be called again (each call is short). Raises
        `RetriableError` now and then where that goes on for long, and may be called again then.
        """
        ...

    def begin(self) -> None:
        """Open a transaction."""
        ...

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        """Publish within the open transaction, and wait: the offsets that the records got."""
        ...

    def commit(self) -> None:
        """Make everything since `begin` visible at once. Nothing of it is visible before.

        After a `RetriableError` the outcome is open, and `commit` may be called again.
        """
        ...

    def abort(self) -> None:
        """Make everything since `begin` void; nothing to do where no transaction is open."""
        ...

    def close(self) -> None:
        """Let go; an open transaction is void."""
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
        """The committed records in [start, end), in order; None where one has to wait.

        Ends only when everything below `end` is decided, so that a commit behind somebody's open
        transaction is not overlooked. After a None the caller may do something else first.
        """
        ...

    def close(self) -> None:
        """Let go."""
        ...


class StateLogReader(Protocol):
    """All state partitions of some input topics, read one after the other by one client."""

    def ends(self, topics: Sequence[str]) -> Mapping[Partition, int]:
        """By input partition, the end of its state, as `StateLog.end` gives it.

        Those are listed that have a place for their state: partitions may be added at any time,
        and the state topic may get its own later.
        """
        ...

    def log(self, partition: Partition) -> StateLog:
        """The state of one of them, to be closed before the next one is asked for.

        Its scans hardly wait, and give way (with a None) after a few records.
        """
        ...

    def close(self) -> None:
        """Let go."""
        ...


class Assignment(Protocol):
    """What an `Input` tells of its partitions, from within `poll` or `close`.

    The calls must be short, but for `revoked`, which may finish what is due.
    """

    def assigned(self, partitions: Sequence[Partition]) -> None:
        """These are ours now, possibly none. They stay silent until `Input.resume`."""
        ...

    def revoked(self, partitions: Sequence[Partition]) -> None:
        """These will be somebody else's when this call returns."""
        ...

    def lost(self, partitions: Sequence[Partition]) -> None:
        """These may be somebody else's already."""
        ...


class Input(Protocol):
    """The input topics, as a member of the consumer group."""

    def poll(
        self, timeout: float, max_records: int | None = None
    ) -> Mapping[Partition, Sequence[Message]]:
        """Messages by partition, in the order of their offsets; waits at most `timeout` seconds.

        Only of partitions that were resumed, from the offset that was given then. `max_records`
        bounds how many come of a partition; without it a few hundred.
        """
        ...

    def resume(self, partition: Partition, offset: int) -> None:
        """Deliver this partition, from this offset on."""
        ...

    def pause(self, partition: Partition) -> None:
        """Deliver nothing of this partition until it is resumed."""
        ...

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The first offset that is still there, and the one behind the last."""
        ...

    def unread(self, partition: Partition, position: int) -> int | None:
        """Number of offsets from `position` on that can be delivered; None if unknown so far.

        `position` is the offset behind the last message that was delivered. 0 where everything was
        delivered that can be: records of open transactions cannot be, as long as they are open, and
        transaction markers and aborted records never. Where there is more to deliver, such offsets
        may be counted with it.
        """
        ...

    def connection_error(self) -> str | None:
        """Why there is no connection; None when there is one."""
        ...

    def commit_group_offset(self, offsets: Mapping[Partition, int]) -> None:
        """Tell the group how far we are, for lag tools; nothing depends on it. Does not wait."""
        ...

    def group_offset(self, partition: Partition) -> int | None:
        """What the group believes, if it believes anything."""
        ...

    def close(self) -> None:
        """Leave the group; `revoked` is called for what is still assigned."""
        ...


class Transport(Protocol):
    """All of it: a broker."""

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
        """The states of all input partitions, for whoever reads them again and again."""
        ...

    def input_log(self, partition: Partition) -> StateLog:
        """The input partition itself, read by position, outside of the group."""
        ...
