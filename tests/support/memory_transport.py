"""The pipeline's ports on a broker in memory."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from stream_fs.errors import AbortableError, OffsetGone
from stream_fs.pipeline.ports import Assignment, OutgoingRecord, Partition, StoredRecord
from stream_fs.records import Message
from tests.support.memory_broker import Call, Log, MemoryBroker


@dataclass(frozen=True, slots=True, eq=False)
class MemoryTransport:
    """`ports.Transport`: the broker as one member of a group sees it.

    `state_topics` are by input topic.
    """

    broker: MemoryBroker
    group: str
    state_topics: Mapping[str, str]
    stream: str = "s"

    def input(self, topics: Sequence[str], assignment: Assignment) -> MemoryInput:
        """Join the group."""
        return MemoryInput(self.broker, self.group, topics, assignment)

    def publisher(self, partition: Partition, *, legacy: bool = False) -> MemoryPublisher:
        """The publisher of this partition."""
        return MemoryPublisher(self.broker, self._transactional_id(str(partition), legacy=legacy))

    def merge_publisher(self, *, legacy: bool = False) -> MemoryPublisher:
        """The publisher of merged rankings."""
        return MemoryPublisher(self.broker, self._transactional_id("merge", legacy=legacy))

    def group_offset(self, partition: Partition) -> int | None:
        """The offset that the group has committed, if any."""
        return self.broker.group_offset(self.group, partition)

    def state_log(self, partition: Partition) -> MemoryStateLog:
        """The state of this partition."""
        return MemoryStateLog(self.broker.log(self.state_topics[partition.topic], partition.number))

    def state_log_reader(self) -> MemoryStateLogReader:
        """The states of all partitions."""
        return MemoryStateLogReader(self.broker, self.state_topics)

    def input_log(self, partition: Partition) -> MemoryStateLog:
        """The records of the partition itself."""
        return MemoryStateLog(self.broker.log(*partition))

    def _transactional_id(self, owned: str, *, legacy: bool) -> str:
        return f"{self.group}/{owned}" if legacy else f"{self.group}/{self.stream}/{owned}"


class MemoryPublisher:
    """`ports.Publisher`: one epoch of a transactional id."""

    def __init__(self, broker: MemoryBroker, transactional_id: str) -> None:
        self._broker = broker
        self._id = transactional_id
        self._epoch: int | None = None

    def acquire(self) -> bool:
        """Fence the previous owner."""
        self._broker.raise_failure("acquire")
        self._epoch = self._broker.acquire(self._id)
        return True

    def begin(self) -> None:
        """Open a transaction."""
        self._check("begin")
        self._broker.begin_transaction(self._id)

    def send(self, records: Sequence[OutgoingRecord]) -> list[int]:
        """Append to the open transaction."""
        self._check("send")
        if not self._broker.has_open_transaction(self._id):
            raise AbortableError("no transaction is open")
        offsets = [self._broker.send(self._id, record) for record in records]
        self._broker.raise_failure("send", after_effect=True)
        return offsets

    def commit(self) -> None:
        """Make the transaction visible."""
        self._check("commit")
        self._broker.end_transaction(self._id, "committed")
        self._broker.raise_failure("commit", after_effect=True)

    def abort(self) -> None:
        """Void the transaction, unless a new owner has done so."""
        self._broker.raise_failure("abort")
        self.close()

    def close(self) -> None:
        """Void an open transaction of this owner."""
        if self._broker.is_current(self._id, self._epoch):
            self._broker.end_transaction(self._id, "aborted")

    def _check(self, call: Call) -> None:
        self._broker.check_owner(self._id, self._epoch)
        self._broker.raise_failure(call)


class MemoryStateLog:
    """`ports.StateLog`; with `shared`, a scan yields None after every record."""

    def __init__(self, log: Log, *, shared: bool = False) -> None:
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
            stable_end = min(end, self._log.stable_end)
            for entry in self._log.between(position, stable_end):
                if entry.visible and entry.key is not None:
                    yield StoredRecord(entry.offset, entry.key, entry.value)
                    if self._shared:
                        yield None
            position = max(position, stable_end)
            if position < end:
                yield None

    def close(self) -> None:
        """Do nothing."""


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
        """The state of one partition."""
        log = self.broker.log(self.state_topics[partition.topic], partition.number)
        return MemoryStateLog(log, shared=True)

    def close(self) -> None:
        """Do nothing."""


class MemoryInput:
    """`ports.Input`: a group member; a rebalance takes effect at its next poll."""

    def __init__(
        self, broker: MemoryBroker, group: str, topics: Sequence[str], assignment: Assignment
    ) -> None:
        self.topics = tuple(topics)
        self.stale = True
        self._broker = broker
        self._group = group
        self._assignment = assignment
        self._assigned: list[Partition] = []
        self._positions: dict[Partition, int] = {}
        broker.join(group, self)

    def poll(
        self,
        timeout: float,  # noqa: ARG002  # memory is read without waiting
        max_records: int | None = None,
    ) -> Mapping[Partition, Sequence[Message]]:
        """The next messages of every partition."""
        if self.stale:
            self._rebalance()
        return {
            partition: messages
            for partition in list(self._positions)
            if (messages := self._read(partition, 500 if max_records is None else max_records))
        }

    def resume(self, partition: Partition, offset: int) -> None:
        """Deliver from this offset on."""
        self._positions[partition] = offset

    def pause(self, partition: Partition) -> None:
        """Deliver nothing."""
        self._positions.pop(partition, None)

    def bounds(self, partition: Partition) -> tuple[int, int]:
        """The first offset, and the one behind the last."""
        log = self._broker.log(*partition)
        return log.start, log.end

    def unread(self, partition: Partition, position: int) -> int | None:
        """The number of messages from `position` on."""
        log = self._broker.log(*partition)
        return sum(entry.visible for entry in log.between(position, log.stable_end))

    def connection_error(self) -> str | None:
        """None: memory is always reachable."""
        return None

    def commit_group_offset(self, offsets: Mapping[Partition, int]) -> None:
        """Store the offsets."""
        self._broker.commit_group_offsets(self._group, offsets)

    def group_offset(self, partition: Partition) -> int | None:
        """The offset that was committed last, if any."""
        return self._broker.group_offset(self._group, partition)

    def close(self) -> None:
        """Leave the group."""
        if self._assigned:
            self._assignment.revoked(self._assigned)
        self._assigned = []
        self._positions.clear()
        self.crash()

    def crash(self) -> None:
        """Leave the group without revoking the partitions."""
        self._broker.leave(self._group, self)

    def _rebalance(self) -> None:
        self.stale = False
        assigned = self._broker.assignment(self._group, self)
        revoked = [partition for partition in self._assigned if partition not in assigned]
        added = [partition for partition in assigned if partition not in self._assigned]
        self._assigned = assigned
        for partition in revoked:
            self._positions.pop(partition, None)
        if revoked:
            self._assignment.revoked(revoked)
        self._assignment.assigned(added)

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
