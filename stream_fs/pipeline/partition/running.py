"""The states of a running partition: chunks are updated, linger, and are committed.

While a batch is ranked and its transaction is in flight, the next chunks are updated already, if
their records are there. Nothing of them is sent before that transaction is committed: the published
bytes are the same as if each chunk had waited for the one before. Meanwhile the input of the
partition is paused if no further chunk can be accepted, so that other partitions can be polled.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from stream_fs.pipeline import events
from stream_fs.pipeline.chunker import Chunker
from stream_fs.pipeline.model import Model, UpdatedChunk, update_chunk
from stream_fs.pipeline.partition import state
from stream_fs.pipeline.partition.commit import (
    InFlightBatch,
    commit_batch,
    commit_snapshot,
    snapshot_due,
)
from stream_fs.pipeline.partition.state import (
    Committed,
    PartitionContext,
    SnapshotMark,
    Unstarted,
)
from stream_fs.pipeline.settings import ChunkPolicy
from stream_fs.pipeline.transaction import IDLE_SECONDS, Clock, Steps
from stream_fs.records import Message
from stream_fs.selector import State

_SHORT_COMMIT_SECONDS: Final = 0.1
"""A commit is waited for this long without a poll, once the next batch is complete: pausing the
partition discards what the client has prefetched, which costs far more than a usual commit."""
_DEAD_LETTER_BYTES: Final = 4_000_000
"""Dead letters in a batch, at most: a transaction has to end within the limit of a client call."""


class LingeringChunk(NamedTuple):
    """An updated chunk, and the seconds that the update took."""

    chunk: UpdatedChunk
    seconds: float


class LingerBuffer:
    """Updated chunks that wait for others to share a transaction with, oldest first.

    A transaction costs about the same for one ranking as for ten. A stream with a backlog has the
    next chunk at hand, and its rankings are not read the moment they appear: there a chunk lingers.
    Without a backlog every chunk is committed at once.
    """

    def __init__(self, linger: float, clock: Clock) -> None:
        """The first chunk lingers at most so many seconds."""
        self._linger = linger
        self._clock = clock
        self._chunks: list[LingeringChunk] = []
        self._until = 0.0
        self._dead_letter_bytes = 0
        self._turn_began = clock()
        self._turn_seconds = 0.0

    def __bool__(self) -> bool:
        return bool(self._chunks)

    @property
    def newest(self) -> UpdatedChunk | None:
        """The chunk that was added last, if any."""
        return self._chunks[-1].chunk if self._chunks else None

    @property
    def rows(self) -> int:
        """Records in all of them."""
        return sum(lingering.chunk.report.rows for lingering in self._chunks)

    @property
    def open(self) -> bool:
        """Whether there is time to update one more chunk, and room for its dead letters.

        It is assumed to take as long as the last one, or as a turn of all partitions if that is
        longer.
        """
        if not self._chunks:
            return True
        needed = max(self._chunks[-1].seconds, self._turn_seconds)
        return self._dead_letter_bytes < _DEAD_LETTER_BYTES and self._clock() + needed < self._until

    def begin_turn(self) -> None:
        """Measure the time since the previous turn of this partition."""
        now = self._clock()
        self._turn_seconds, self._turn_began = now - self._turn_began, now

    def add(self, chunk: UpdatedChunk, seconds: float) -> None:
        """Append a chunk."""
        if not self._chunks:
            self._until, self._dead_letter_bytes = self._clock() + self._linger, 0
        self._dead_letter_bytes += sum(letter.size for letter in chunk.dead_letters)
        self._chunks.append(LingeringChunk(chunk, seconds))

    def take(self) -> list[LingeringChunk]:
        """Remove and return all chunks."""
        taken, self._chunks = self._chunks, []
        return taken


class Tail(NamedTuple):
    """What the chunks in the linger buffer follow: a state, and the newest snapshot up to it."""

    state: State
    snapshot: SnapshotMark


class Intake:
    """Records between the input and the next commit: those of the open chunk, then updated chunks.

    An error of a chunk behind others closes the intake, and is raised when those are committed.
    """

    def __init__(self, context: PartitionContext, model: Model, settled: int) -> None:
        """Continues behind the model; bad records below the offset `settled` were accepted."""
        settings = context.settings
        self._context = context
        self._paused = True
        self._deferred_error: Exception | None = None
        self.buffer = LingerBuffer(settings.linger, context.runtime.clock)
        self.chunker = Chunker(context.decoder, settings.dead_letters, model.next_offset, settled)

    @property
    def lag(self) -> int | None:
        """See `State.lag`."""
        return self._context.input.unread(self._context.partition, self.chunker.position)

    def receive(self, messages: Sequence[Message], newest: int, policy: ChunkPolicy) -> None:
        """Add messages to the open chunk, which follows the chunk `newest`."""
        batch = self.chunker.add(messages)
        self._context.runtime.observe(
            events.RecordsRead(
                self._context.partition,
                good=len(batch.good),
                bad=Counter(bad.reason for bad in batch.bad),
                position=self.chunker.position,
                # Updated chunks are observed when they are committed.
                waiting=self.chunker.good + self.buffer.rows,
                size=policy.first if newest == 0 else policy.records,
            )
        )

    def pause(self) -> None:
        """Stop the input, so that what is held in memory stays bounded."""
        if not self._paused:
            self._paused = True
            self._context.input.pause(self._context.partition)

    def resume(self) -> None:
        """Let the input continue behind what was received."""
        if self._paused:
            self._paused = False
            self._context.input.resume(self._context.partition, self.chunker.position)

    def newest(self, tail: Tail) -> State:
        """The state that the next chunk updates."""
        newest = self.buffer.newest
        return tail.state if newest is None else newest.state

    def accepts(self, tail: Tail) -> bool:
        """Whether the next chunk belongs to the batch in the buffer.

        A chunk with a snapshot is the last of its batch, so that snapshots are equally far apart.
        """
        if self._deferred_error is not None:
            return False
        newest = self.buffer.newest
        if newest is None:
            return True
        return (
            self.buffer.open
            and not snapshot_due(
                SnapshotMark(newest.state.chunk, newest.chunk_policy),
                tail.snapshot,
                self._context.settings.checkpoint_every,
            )
            and self._has_backlog
        )

    def update_next(self, tail: Tail, *, defer: bool) -> bool:
        """Update the next chunk, if it is accepted and its records are there; whether it was.

        With `defer` an error closes the intake, instead of being raised.
        """
        if not self.accepts(tail):
            return False
        try:
            updated = self._update(self.newest(tail))
        except Exception as error:
            if not defer:
                raise
            self._deferred_error = error
            return False
        if updated is not None:
            self.buffer.add(*updated)
        return updated is not None

    def raise_deferred_error(self) -> None:
        """Raise the error of the next chunk, now that those before it are committed."""
        if self._deferred_error is not None:
            raise self._deferred_error

    def _update(self, newest: State) -> LingeringChunk | None:
        policy = self._context.settings.chunk_policy
        ready = self.chunker.take(newest.chunk + 1, policy)
        if ready is None:
            return None
        clock = self._context.runtime.clock
        began = clock()
        return LingeringChunk(update_chunk(newest, ready, policy), clock() - began)

    @property
    def _has_backlog(self) -> bool:
        """Whether the log has the records of another chunk already, as far as is known."""
        policy = self._context.settings.chunk_policy
        return self.chunker.good + (self.lag or 0) >= policy.records


class Receiving(state.State):
    """A state that receives records."""

    def __init__(self, context: PartitionContext, intake: Intake) -> None:
        self.context = context
        self.intake = intake

    @property
    def lag(self) -> int | None:
        """See `State.lag`."""
        return self.intake.lag

    def begin_turn(self) -> None:
        """See `State.begin_turn`."""
        self.intake.buffer.begin_turn()


class Running(Receiving):
    """A state in which new chunks are updated."""

    phase: events.Phase = "running"

    def __init__(
        self, context: PartitionContext, intake: Intake, base: Unstarted | Committed, tail: Tail
    ) -> None:
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

    def __init__(
        self, context: PartitionContext, intake: Intake, base: Unstarted | Committed
    ) -> None:
        super().__init__(context, intake, base, Tail(base.model.state, base.snapshot))

    @property
    def busy(self) -> bool:
        """Lingering chunks will be committed soon."""
        return bool(self.intake.buffer)

    def advance(self) -> tuple[state.State, bool]:
        """Update the next chunk; begin to commit those that are complete."""
        intake = self.intake
        if not intake.buffer:
            intake.raise_deferred_error()
        updated = intake.update_next(self.tail, defer=bool(intake.buffer))
        if intake.accepts(self.tail):
            if not updated:
                intake.resume()
            return self, updated
        chunks = intake.buffer.take()
        waiting = intake.chunker.good + sum(chunk.report.rows for chunk, _ in chunks)
        for chunk, seconds in chunks:
            waiting -= chunk.report.rows
            observe_update(chunk, seconds, self.context, waiting, replayed=False)
        batch = InFlightBatch(
            [chunk for chunk, _ in chunks], start_recorded=isinstance(self.base, Committed)
        )
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

    def __init__(  # the fields of the state before, and the commit
        self,
        context: PartitionContext,
        intake: Intake,
        base: Unstarted | Committed,
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
        mark, before = SnapshotMark(last.state.chunk, last.chunk_policy), idle.base.snapshot
        due = snapshot_due(mark, before, idle.context.settings.checkpoint_every)
        return cls(
            idle.context,
            idle.intake,
            idle.base,
            Tail(last.state, mark if due else before),
            batch,
            commit_batch(batch, idle.base, idle.context),
        )

    def advance(self) -> tuple[state.State, bool]:
        """Take a step of the commit, or update a chunk of the next batch meanwhile."""
        following, more = self.step()
        if following is self:
            return self, self._update_ahead()
        return following, more

    def step(self) -> tuple[state.State, bool]:
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

    def _retrying(self) -> state.State:
        self.intake.pause()
        return Retrying(self.context, self.intake, self.base, self.tail, self.batch, self.steps)

    def _update_ahead(self) -> bool:
        """Use the time that the commit takes; whether to go on without a poll.

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

    def advance(self) -> tuple[state.State, bool]:
        """Take a step of the commit."""
        return self.step()

    def _retrying(self) -> state.State:
        return self


def observe_update(
    chunk: UpdatedChunk, seconds: float, context: PartitionContext, waiting: int, *, replayed: bool
) -> None:
    """Report an updated chunk, once the chunks before it are committed."""
    size = chunk.chunk_policy.records
    context.runtime.observe(
        events.ChunkUpdated(context.partition, chunk.report, seconds, replayed, waiting, size)
    )
    context.runtime.crash_hook("updated")
