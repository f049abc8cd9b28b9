"""A broker in memory: topics, transactions, fencing and a consumer group, for tests.

It keeps the promises of `stream_fs.pipeline.ports` (the contract suite says so) and nothing of
what Kafka does beyond them. Failures are data: `fail_next` makes the next call of a kind raise,
before or after it has taken effect.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from stream_fs.errors import AbortableError, FencedError, OffsetGone, TransportError
from stream_fs.pipeline.ports import Assignment, OutgoingRecord, Partition, StoredRecord
from stream_fs.records import Message

Headers = tuple[tuple[str, bytes | None], ...]
Call = Literal["acquire", "begin", "send", "commit", "abort"]


@dataclass(slots=True, eq=False)
class _Transaction:
    state: Literal["open", "committed", "aborted"] = "open"
    touched: set[tuple[str, int]] = field(default_factory=set)


@dataclass(frozen=True, slots=True, eq=False)
class _Entry:
    offset: int
    key: bytes | None
    value: bytes | None
    headers: Headers
    timestamp: int
    transaction: _Transaction | None
    marker: bool = False

    @property
    def visible(self) -> bool:
        return not self.marker and (
            self.transaction is None or self.transaction.state == "committed"
        )


@dataclass(slots=True, eq=False)
class _Log:
    entries: list[_Entry] = field(default_factory=list)
    start: int = 0
    end: int = 0

    def append(
        self,
        key: bytes | None,
        value: bytes | None,
        headers: Headers = (),
        timestamp: int = 0,
        transaction: _Transaction | None = None,
        *,
        marker: bool = False,
    ) -> int:
        offset = self.end
        entry = _Entry(offset, key, value, headers, timestamp, transaction, marker)
        self.entries.append(entry)
        self.end += 1
        return offset

    def between(self, start: int, end: int) -> list[_Entry]:
        first = self.end - len(self.entries)  # retention takes from the front only
        return self.entries[max(start - first, 0) : max(end - first, 0)]

    @property
    def stable_end(self) -> int:
        """The offset of the first record whose transaction is still open."""
        for entry in self.entries:
            if entry.transaction is not None and entry.transaction.state == "open":
                return entry.offset
        return self.end


class MemoryBroker:
    """Topics by name, each a list of partitions."""

    def __init__(self) -> None:
        self._topics: dict[str, list[_Log]] = {}
        self._owners: dict[str, int] = defaultdict(int)
        self._open: dict[str, _Transaction] = {}
        self._failures: list[tuple[Call, TransportError, bool]] = []
        self._groups: dict[str, list[MemoryInput]] = defaultdict(list)
        self._advised: dict[tuple[str, Partition], int] = {}

    def create(self, topic: str, partitions: int) -> None:
        """Make a topic."""
        self._topics[topic] = [_Log() for _ in range(partitions)]

    def grow(self, topic: str, partitions: int) -> None:
        """Add partitions, up to so many; members of groups learn of it at their next poll."""
        logs = self._topics[topic]
        logs += [_Log() for _ in range(partitions - len(logs))]
        for group in self._groups:
            self._rebalance(group)

    def partitions(self, topic: str) -> int:
        """How many partitions the topic has."""
        return len(self._topics[topic])

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
        """Append a record outside any transaction; its offset."""
        return self.log(topic, partition).append(key, value, headers, timestamp)

    def committed(self, topic: str) -> list[Message]:
        """Every record that a read_committed subscriber sees, by partition and offset."""
        return [
            Message(topic, number, e.offset, e.timestamp, e.key, e.value, e.headers)
            for number, log in enumerate(self._topics[topic])
            for e in log.entries
            if e.visible and e.offset < log.stable_end
        ]

    def delete_below(self, topic: str, partition: int, offset: int) -> None:
        """Retention: forget what is below the offset."""
        log = self.log(topic, partition)
        log.start = max(log.start, offset)
        log.entries = [entry for entry in log.entries if entry.offset >= log.start]

    def fail_next(self, call: Call, error: TransportError, *, after_effect: bool = False) -> None:
        """Let the next call of this kind raise; the calls after it are sound again."""
        self._failures.append((call, error, after_effect))

    def transport(
        self, group: str, state_topics: Mapping[str, str], stream: str = "s"
    ) -> MemoryTransport:
        """The broker as one member of a group sees it; `state_topics` by input topic."""
        return MemoryTransport(self, group, state_topics, stream)

    def log(self, topic: str, partition: int) -> _Log:
        """One partition."""
        return self._topics[topic][partition]

    # What the adapters below share. ------------------------------------------------------------

    def _failing(self, call: Call, *, after: bool) -> None:
        for index, (planned, error, after_effect) in enumerate(self._failures):
            if planned == call and after_effect == after:
                del self._failures[index]
                raise error

    def _end(self, identity: str, state: Literal["committed", "aborted"]) -> None:
        transaction = self._open.pop(identity, None)
        if transaction is None:
            return
        transaction.state = state
        for topic, number in sorted(transaction.touched):
            self.log(topic, number).append(None, None, transaction=transaction, marker=True)

    def _rebalance(self, group: str) -> None:
        for member in self._groups[group]:
            member.stale = True

    def _share(self, group: str, member: MemoryInput) -> list[Partition]:
        members = self._groups[group]
        everything = [
            Partition(topic, number)
            for topic in member.topics
            for number in range(self.partitions(topic))
        ]
        return everything[members.index(member) :: len(members)]


class MemoryPublisher:
    """`ports.Publisher`: one epoch of a transactional id."""

    def __init__(self, broker: MemoryBroker, identity: str) -> None:
        self._broker = broker
        self._identity = identity
        self._epoch: int | None = None

    def acquire(self) -> bool:
        """Fence the previous owner."""
        self._broker._failing("acquire", after=False)
        self._broker._end(self._identity, "aborted")
        self._broker._owners[self._identity] += 1
        self._epoch = self._broker._owners[self._identity]
        return True

    def begin(self) -> None:
        """Open a transaction."""
        self._check("begin")
        if self._identity in self._broker._open:
            raise AbortableError("a transaction is open already")
        self._broker._open[self._identity] = _Transaction()

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        """Append to the open transaction."""
        self._check("send")
        transaction = self._transaction()
        offsets = []
        for record in records:
            number = record.partition
            if number is None:
                number = sum(record.key or b"") % self._broker.partitions(record.topic)
            transaction.touched.add((record.topic, number))
            log = self._broker.log(record.topic, number)
            offsets.append(log.append(record.key, record.value, record.headers, 0, transaction))
        self._broker._failing("send", after=True)
        return offsets

    def commit(self) -> None:
        """Make it visible."""
        self._check("commit")
        if self._identity in self._broker._open:
            self._broker._end(self._identity, "committed")
        self._broker._failing("commit", after=True)

    def abort(self) -> None:
        """Make it void; a new owner has done that already."""
        self._broker._failing("abort", after=False)
        if self._epoch == self._broker._owners[self._identity]:
            self._broker._end(self._identity, "aborted")

    def close(self) -> None:
        """Let go; an open transaction of this owner is void."""
        if self._epoch == self._broker._owners[self._identity]:
            self._broker._end(self._identity, "aborted")

    def _check(self, call: Call) -> None:
        if self._epoch != self._broker._owners[self._identity]:
            raise FencedError(f"{self._identity} has a new owner")
        self._broker._failing(call, after=False)

    def _transaction(self) -> _Transaction:
        if self._identity not in self._broker._open:
            raise AbortableError("no transaction is open")
        return self._broker._open[self._identity]


class MemoryStateLog:
    """`ports.StateLog`; one that is shared gives way after every record."""

    def __init__(self, log: _Log, *, shared: bool = False) -> None:
        self._log = log
        self._shared = shared

    def end(self) -> int:
        """The offset behind the last record."""
        return self._log.end

    def start(self) -> int:
        """The offset of the first record."""
        return self._log.start

    def scan(self, start: int, end: int) -> Iterator[StoredRecord | None]:
        """The committed records in [start, end)."""
        position = start
        while position < end:
            decided = min(end, self._log.stable_end)
            for entry in self._log.between(position, decided):
                if entry.visible and entry.key is not None:
                    yield StoredRecord(entry.offset, entry.key, entry.value)
                    if self._shared:
                        yield None
            position = max(position, decided)
            if position < end:
                yield None

    def close(self) -> None:
        """Nothing to let go of."""


@dataclass(frozen=True, slots=True, eq=False)
class MemoryStateLogReader:
    """`ports.StateLogReader`."""

    broker: MemoryBroker
    state_topics: Mapping[str, str]

    def ends(self, topics: Sequence[str]) -> Mapping[Partition, int]:
        """The end of every state partition."""
        return {
            Partition(topic, number): self.broker.log(self.state_topics[topic], number).end
            for topic in topics
            for number in range(self.broker.partitions(self.state_topics[topic]))
        }

    def log(self, partition: Partition) -> MemoryStateLog:
        """One of them."""
        log = self.broker.log(self.state_topics[partition.topic], partition.number)
        return MemoryStateLog(log, shared=True)

    def close(self) -> None:
        """Nothing to let go of."""


class MemoryInput:
    """`ports.Input`: a member of a group; a rebalance takes effect at its next poll."""

    def __init__(
        self, broker: MemoryBroker, group: str, topics: Sequence[str], assignment: Assignment
    ) -> None:
        self.topics = tuple(topics)
        self.stale = True
        self._broker = broker
        self._group = group
        self._assignment = assignment
        self._owned: list[Partition] = []
        self._positions: dict[Partition, int] = {}
        broker._groups[group].append(self)
        broker._rebalance(group)

    def poll(
        self,
        timeout: float,  # noqa: ARG002  # nothing to wait for in memory
        max_records: int | None = None,
    ) -> Mapping[Partition, Sequence[Message]]:
        """What is there, a few hundred messages at most per partition."""
        if self.stale:
            self._follow()
        return {
            partition: messages
            for partition in list(self._positions)
            if (messages := self._read(partition, 500 if max_records is None else max_records))
        }

    def resume(self, partition: Partition, offset: int) -> None:
        """Deliver from this offset on."""
        self._positions[partition] = offset

    def pause(self, partition: Partition) -> None:
        """Deliver nothing more."""
        self._positions.pop(partition, None)

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """First offset, and the one behind the last."""
        log = self._broker.log(*partition)
        return log.start, log.end

    def unread(self, partition: Partition, position: int) -> int | None:
        """The number of messages from `position` on."""
        log = self._broker.log(*partition)
        return sum(entry.visible for entry in log.between(position, log.stable_end))

    def connection_error(self) -> str | None:
        """Memory is always there."""
        return None

    def commit_group_offset(self, offsets: Mapping[Partition, int]) -> None:
        """Remember for `advised`."""
        for partition, offset in offsets.items():
            self._broker._advised[self._group, partition] = offset

    def group_offset(self, partition: Partition) -> int | None:
        """What was advised last."""
        return self._broker._advised.get((self._group, partition))

    def close(self) -> None:
        """Leave the group."""
        if self._owned:
            self._assignment.revoked(self._owned)
        self._owned = []
        self._positions.clear()
        self._broker._groups[self._group].remove(self)
        self._broker._rebalance(self._group)

    def vanish(self) -> None:
        """Be gone without a word, as after a crash."""
        self._broker._groups[self._group].remove(self)
        self._broker._rebalance(self._group)

    def _follow(self) -> None:
        self.stale = False
        share = self._broker._share(self._group, self)
        gone = [partition for partition in self._owned if partition not in share]
        new = [partition for partition in share if partition not in self._owned]
        self._owned = share
        for partition in gone:
            self._positions.pop(partition, None)
        if gone:
            self._assignment.revoked(gone)
        self._assignment.assigned(new)

    def _read(self, partition: Partition, max_records: int) -> list[Message]:
        log, position = self._broker.log(*partition), self._positions[partition]
        if position < log.start:
            raise OffsetGone(f"{partition} begins at offset {log.start}, wanted {position}")
        entries = log.between(position, min(position + max_records, log.stable_end))
        if entries:
            self._positions[partition] = entries[-1].offset + 1
        return [
            Message(*partition, e.offset, e.timestamp, e.key, e.value, e.headers)
            for e in entries
            if e.visible
        ]


@dataclass(frozen=True, slots=True, eq=False)
class MemoryTransport:
    """`ports.Transport`."""

    broker: MemoryBroker
    group: str
    state_topics: Mapping[str, str]
    stream: str = "s"

    def input(self, topics: Sequence[str], assignment: Assignment) -> MemoryInput:
        """Join the group."""
        return MemoryInput(self.broker, self.group, topics, assignment)

    def publisher(self, partition: Partition, *, legacy: bool = False) -> MemoryPublisher:
        """A publisher for this partition."""
        return MemoryPublisher(self.broker, self._identity(str(partition), legacy=legacy))

    def group_offset(self, partition: Partition) -> int | None:
        """What the group has committed."""
        return self.broker._advised.get((self.group, partition))

    def merge_publisher(self, *, legacy: bool = False) -> MemoryPublisher:
        """The publisher of merged rankings."""
        return MemoryPublisher(self.broker, self._identity("merge", legacy=legacy))

    def _identity(self, what: str, *, legacy: bool) -> str:
        return f"{self.group}/{what}" if legacy else f"{self.group}/{self.stream}/{what}"

    def state_log(self, partition: Partition) -> MemoryStateLog:
        """The state of this partition."""
        return MemoryStateLog(self.broker.log(self.state_topics[partition.topic], partition.number))

    def state_log_reader(self) -> MemoryStateLogReader:
        """The states of all partitions."""
        return MemoryStateLogReader(self.broker, self.state_topics)

    def input_log(self, partition: Partition) -> MemoryStateLog:
        """The partition itself."""
        return MemoryStateLog(self.broker.log(*partition))
