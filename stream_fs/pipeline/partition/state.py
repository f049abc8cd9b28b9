"""The states of a partition: what all of them share.

`task` lists them with their transitions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from stream_fs.checkpoint import Progress
from stream_fs.pipeline import events
from stream_fs.pipeline.model import Model, UpdatedChunk
from stream_fs.pipeline.ports import Input, Partition, Publisher, Transport
from stream_fs.pipeline.settings import ChunkPolicy, StreamSettings
from stream_fs.pipeline.transaction import Runtime, TransactionRunner
from stream_fs.records import Message
from stream_fs.wire.records.decoder import RecordDecoder


@dataclass(frozen=True, slots=True, eq=False)
class PartitionContext:
    """What the states of one partition work with."""

    partition: Partition
    settings: StreamSettings
    decoder: RecordDecoder
    transport: Transport
    input: Input
    runtime: Runtime
    publisher: Publisher
    transactions: TransactionRunner


class SnapshotMark(NamedTuple):
    """The newest snapshot: its chunk (0 if there is none), and the policy of its chunks."""

    chunk: int
    policy: ChunkPolicy

    @classmethod
    def after(cls, chunk: Model | UpdatedChunk) -> SnapshotMark:
        """The mark of a snapshot that is taken after this chunk."""
        return cls(chunk.state.chunk, chunk.chunk_policy)


@dataclass(frozen=True, slots=True, eq=False)
class Unstarted:
    """An empty model without a progress record, which is written before the first chunk.

    `marked` says whether the marker that older releases refuse (see `legacy_state`) is there.
    """

    model: Model
    marked: bool

    @property
    def snapshot(self) -> SnapshotMark:
        """A mark for no snapshot."""
        return SnapshotMark(0, self.model.chunk_policy)

    @property
    def next_offset(self) -> int:
        """The offset at which the first chunk begins."""
        return self.model.next_offset


@dataclass(frozen=True, slots=True, eq=False)
class Committed:
    """A committed model with its progress record."""

    model: Model
    progress: Progress

    @property
    def snapshot(self) -> SnapshotMark:
        """The newest snapshot; a change of the policy is always followed by one."""
        return SnapshotMark(self.progress.snapshots[0].chunk, self.model.chunk_policy)

    @property
    def next_offset(self) -> int:
        """The offset behind the last committed chunk."""
        return self.progress.next_offset


Base: TypeAlias = Unstarted | Committed
"""What the next commit follows."""


class PartitionState:
    """A state of a partition."""

    phase: events.Phase
    """Its name for observers."""

    @property
    def busy(self) -> bool:
        """Whether `advance` has work now, or soon."""
        return True

    @property
    def lag(self) -> int | None:
        """Records that can be read and were not received, see `Input.unread`; None if unknown."""
        return None

    def begin_turn(self) -> None:
        """Note the time of this turn."""

    def receive(self, messages: Sequence[Message]) -> None:
        """Accept messages that follow those received before, if the state accepts any."""

    def advance(self) -> tuple[PartitionState, bool]:
        """Take one step; the state after it, and whether there is more to do at once."""
        raise NotImplementedError

    def close(self) -> None:
        """Release resources of the state itself."""
