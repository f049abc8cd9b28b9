"""A Kafka broker in memory: topics, transactions, fencing, consumer groups and injected failures.

It keeps the promises of `stream_fs.pipeline.ports` with the adapters in `memory_transport`, as the
contract suite shows, and simulates nothing of Kafka beyond them.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from stream_fs.errors import AbortableError, FencedError, TransportError
from stream_fs.pipeline.ports import OutgoingRecord, Partition
from stream_fs.records import Message

Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]
Call: TypeAlias = Literal["acquire", "begin", "send", "commit", "abort"]


@dataclass(slots=True, eq=False)
class Transaction:
    """A transaction and the partitions that it has written."""

    state: Literal["open", "committed", "aborted"] = "open"
    partitions: set[tuple[str, int]] = field(default_factory=set)


@dataclass(frozen=True, slots=True, eq=False)
class Entry:
    """A record of a log, or the marker of a transaction."""

    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    transaction: Transaction | None
    marker: bool = False

    @property
    def visible(self) -> bool:
        """Whether read_committed readers see it."""
        return not self.marker and (
            self.transaction is None or self.transaction.state == "committed"
        )


@dataclass(slots=True, eq=False)
class Log:
    """A partition."""

    entries: list[Entry] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int = 0,
        transaction: Transaction | None = None,
        *,
        marker: bool = False,
    ) -> int:
        """Append an entry; returns its offset."""
        offset = self.end
        self.entries.append(Entry(offset, key, value, headers, timestamp, transaction, marker))
        self.end += 1
        return offset

    def between(self, start: int, end: int) -> list[Entry]:
        """The entries in [start, end)."""
        first = self.end - len(self.entries)  # retention deletes from the front only
        return self.entries[max(start - first, 0) : max(end - first, 0)]

    @property
    def stable_end(self) -> int:
        """The last stable offset: of the first record of an open transaction, or the end."""
        for entry in self.entries:
            if entry.transaction is not None and entry.transaction.state == "open":
                return entry.offset
        return self.end


class Member(Protocol):
    """A member of a consumer group, as the broker knows it."""

    topics: tuple[str, ...]
    stale: bool
    """Whether the group has been rebalanced since its last poll."""


class MemoryBroker:
    """Topics by name, each a list of partitions; owners by transactional id; groups by name.

    `fail_next` makes the next call of a kind raise, before or after it has taken effect.
    """

    def __init__(self) -> None:
        self._topics: dict[str, list[Log]] = {}
        self._epochs: dict[str, int] = defaultdict(int)
        self._open: dict[str, Transaction] = {}
        self._failures: list[tuple[Call, TransportError, bool]] = []
        self._groups: dict[str, list[Member]] = defaultdict(list)
        self._group_offsets: dict[tuple[str, Partition], int] = {}

    # Topics

    def create(self, topic: str, partitions: int) -> None:
        """Create a topic."""
        self._topics[topic] = [Log() for _ in range(partitions)]

    def grow(self, topic: str, partitions: int) -> None:
        """Increase the number of partitions to this; groups are rebalanced."""
        logs = self._topics[topic]
        logs += [Log() for _ in range(partitions - len(logs))]
        for group in self._groups:
            self.rebalance(group)

    def partitions(self, topic: str) -> int:
        """The number of partitions of a topic."""
        return len(self._topics[topic])

    def log(self, topic: str, partition: int) -> Log:
        """One partition."""
        return self._topics[topic][partition]

    def produce(
        self,
        topic: str,
        value: bytes | None,
        *,
        partition: int = 0,
        key: bytes | None = None,
        headers: Headers = (),
        timestamp: int = 0,
    ) -> int:
        """Append a record outside of transactions; returns its offset."""
        return self.log(topic, partition).append(key, value, headers, timestamp)

    def committed(self, topic: str) -> list[Message]:
        """All records that a read_committed subscriber sees, by partition and offset."""
        return [
            Message(topic, number, e.offset, e.timestamp, e.key, e.value, e.headers)
            for number, log in enumerate(self._topics[topic])
            for e in log.entries
            if e.visible and e.offset < log.stable_end
        ]

    def delete_below(self, topic: str, partition: int, offset: int) -> None:
        """Delete the records below the offset, as retention does."""
        log = self.log(topic, partition)
        log.start = max(log.start, offset)
        log.entries = [entry for entry in log.entries if entry.offset >= log.start]

    # Failures

    def fail_next(self, call: Call, error: TransportError, *, after_effect: bool = False) -> None:
        """Let the next call of this kind raise, before or after its effect."""
        self._failures.append((call, error, after_effect))

    def raise_failure(self, call: Call, *, after_effect: bool = False) -> None:
        """Raise the first failure that was requested for this call."""
        for index, (failing, error, after) in enumerate(self._failures):
            if failing == call and after == after_effect:
                del self._failures[index]
                raise error

    # Transactions

    def acquire(self, transactional_id: str) -> int:
        """Fence the owner, abort its transaction, and return a new epoch."""
        self.end_transaction(transactional_id, "aborted")
        self._epochs[transactional_id] += 1
        return self._epochs[transactional_id]

    def is_current(self, transactional_id: str, epoch: int | None) -> bool:
        """Whether no other owner has acquired the id since."""
        return epoch == self._epochs[transactional_id]

    def check_owner(self, transactional_id: str, epoch: int | None) -> None:
        """Raise `FencedError` for any but the present owner."""
        if not self.is_current(transactional_id, epoch):
            raise FencedError(f"{transactional_id} has a new owner")

    def begin_transaction(self, transactional_id: str) -> None:
        """Open a transaction."""
        if transactional_id in self._open:
            raise AbortableError("a transaction is open already")
        self._open[transactional_id] = Transaction()

    def send(self, transactional_id: str, record: OutgoingRecord) -> int:
        """Append a record in the open transaction; returns its offset."""
        transaction = self._open[transactional_id]
        number = record.partition
        if number is None:
            number = sum(record.key or b"") % self.partitions(record.topic)
        transaction.partitions.add((record.topic, number))
        log = self.log(record.topic, number)
        return log.append(record.key, record.value, record.headers, 0, transaction)

    def has_open_transaction(self, transactional_id: str) -> bool:
        """Whether a transaction is open."""
        return transactional_id in self._open

    def end_transaction(
        self, transactional_id: str, state: Literal["committed", "aborted"]
    ) -> None:
        """Commit or abort the open transaction, if there is one, and write its markers."""
        transaction = self._open.pop(transactional_id, None)
        if transaction is None:
            return
        transaction.state = state
        for topic, number in sorted(transaction.partitions):
            self.log(topic, number).append(None, None, transaction=transaction, marker=True)

    # Groups

    def join(self, group: str, member: Member) -> None:
        """Add a member, and rebalance."""
        self._groups[group].append(member)
        self.rebalance(group)

    def leave(self, group: str, member: Member) -> None:
        """Remove a member, and rebalance."""
        self._groups[group].remove(member)
        self.rebalance(group)

    def assignment(self, group: str, member: Member) -> list[Partition]:
        """The partitions of a member."""
        members = self._groups[group]
        partitions = [
            Partition(topic, number)
            for topic in member.topics
            for number in range(self.partitions(topic))
        ]
        return partitions[members.index(member) :: len(members)]

    def commit_group_offsets(self, group: str, offsets: Mapping[Partition, int]) -> None:
        """Store offsets of a group."""
        for partition, offset in offsets.items():
            self._group_offsets[group, partition] = offset

    def group_offset(self, group: str, partition: Partition) -> int | None:
        """The committed offset of a group, if any."""
        return self._group_offsets.get((group, partition))

    def rebalance(self, group: str) -> None:
        """Let the members get their new assignments at their next polls."""
        for member in self._groups[group]:
            member.stale = True
