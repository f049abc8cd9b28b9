"""The states of a running partition: chunks are updated, linger, and are committed.

While a batch is ranked and its transaction is in flight, the next chunks are updated already, if
their records are there. Nothing of them is sent before that transaction is committed: the published
bytes are the same as if each chunk had waited for the one before. Meanwhile the input of the
partition is paused if no further chunk can be accepted, so that other partitions can be polled.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from stream_fs.pipeline import events
from stream_fs.pipeline.partition.commit import (
    InFlightBatch,
    commit_batch,
    commit_snapshot,
    snapshot_due,
)
from stream_fs.pipeline.partition.intake import Intake, Tail
from stream_fs.pipeline.partition.state import (
    Base,
    Committed,
    PartitionContext,
    PartitionState,
    SnapshotMark,
    Unstarted,
)
from stream_fs.pipeline.transaction import IDLE_SECONDS, Steps
from stream_fs.records import Message

_SHORT_COMMIT_SECONDS: Final = 0.1
"""A commit is waited for this long without a poll, once the next batch is complete: pausing the
partition discards what the client has prefetched, which costs far more than a usual commit."""


class Receiving(PartitionState):
    """A state that receives records."""

    def __init__(self, context: PartitionContext, intake: Intake) -> None:
        self.context = context
        self.intake = intake

    @property
    def lag(self) -> int | None:
        """See `PartitionState.lag`."""
        return self.intake.lag

    def begin_turn(self) -> None:
        """See `PartitionState.begin_turn`."""
        self.intake.buffer.begin_turn()


class Running(Receiving):
    """A state in which new chunks are updated."""

    phase: events.Phase = "running"

    def __init__(self, context: PartitionContext, intake: Intake, base: Base, tail: Tail) -> None:
        """`base` is what is committed, `tail` what the chunks in the buffer follow."""
        super().__init__(context, intake)
        self.base = base
        self.tail = tail

    def receive(self, messages: Sequence[Message]) -> None:
        """Add messages to the open chunk."""
        newest = self.intake.newest(self.tail).chunk
        self.intake.receive(messages, newest, self.context.settings.chunk_policy)


class Idle(Running):
    """No commit is in progress."""

    def __init__(self, context: PartitionContext, intake: Intake, base: Base) -> None:
        super().__init__(context, intake, base, Tail(base.model.state, base.snapshot))

    @property
    def busy(self) -> bool:
        """Whether there are lingering chunks, which will be committed soon."""
        return bool(self.intake.buffer)

    def advance(self) -> tuple[PartitionState, bool]:
        """Update the next chunk; begin to commit those that are complete."""
        intake = self.intake
        if not intake.buffer:
            intake.raise_deferred_error()
        updated = intake.update_next(self.tail, defer=bool(intake.buffer))
        if intake.accepts(self.tail):
            if not updated:
                intake.resume()
            return self, updated
        batch = InFlightBatch(intake.take_batch(), start_recorded=isinstance(self.base, Committed))
        return Committing.of(self, batch), True

    def shut_down(self, deadline: float) -> None:
        """Commit a snapshot, if the model is newer than the last one and there is time."""
        base = self.base
        if isinstance(base, Unstarted) or self.context.runtime.clock() >= deadline:
            return
        if base.snapshot.chunk < base.model.state.chunk:
            commit_snapshot(base, deadline, self.context)


class Committing(Running):
    """A batch is being committed, while the next one is updated."""

    def __init__(
        self,
        context: PartitionContext,
        intake: Intake,
        base: Base,
        tail: Tail,
        batch: InFlightBatch,
        steps: Steps[Committed],
    ) -> None:
        super().__init__(context, intake, base, tail)
        self.batch = batch
        self.steps = steps

    @classmethod
    def of(cls, idle: Idle, batch: InFlightBatch) -> Committing:
        """The state in which the commit of a batch begins."""
        last = batch.chunks[-1]
        mark, before = SnapshotMark.after(last), idle.base.snapshot
        due = snapshot_due(mark, before, idle.context.settings.checkpoint_every)
        return cls(
            idle.context,
            idle.intake,
            idle.base,
            Tail(last.state, mark if due else before),
            batch,
            commit_batch(batch, idle.base, idle.context),
        )

    def advance(self) -> tuple[PartitionState, bool]:
        """Take a step of the commit, or update a chunk of the next batch meanwhile."""
        following, more = self.step()
        if following is self:
            return self, self._update_ahead()
        return following, more

    def step(self) -> tuple[PartitionState, bool]:
        """Take a step of the commit."""
        try:
            failed = next(self.steps)
        except StopIteration as end:
            return Idle(self.context, self.intake, end.value), True
        if failed is None:
            return self, False
        self.context.runtime.observe(
            events.TransactionFailed(self.context.partition, failed.outcome, failed.error)
        )
        return self._retrying(), False

    def close(self) -> None:
        """End the generator of the commit."""
        self.steps.close()

    def _retrying(self) -> PartitionState:
        self.intake.pause()
        return Retrying(self.context, self.intake, self.base, self.tail, self.batch, self.steps)

    def _update_ahead(self) -> bool:
        """Use the time that the commit takes; whether to continue without a poll.

        A chunk that does not belong to the next batch is not updated, and nothing more is read.
        """
        intake, runtime = self.intake, self.context.runtime
        if intake.update_next(self.tail, defer=True):
            return True
        if intake.accepts(self.tail):
            intake.resume()
            return False
        short = runtime.clock() - self.batch.ranked_at < _SHORT_COMMIT_SECONDS
        if intake.buffer and self.batch.start_recorded and short:
            self.context.transactions.wait_in_flight(IDLE_SECONDS)
            return True
        intake.pause()
        return False


class Retrying(Committing):
    """An attempt to commit a batch has failed; the input is paused until one succeeds."""

    phase = "publishing"

    def advance(self) -> tuple[PartitionState, bool]:
        """Take a step of the commit."""
        return self.step()

    def _retrying(self) -> PartitionState:
        return self
