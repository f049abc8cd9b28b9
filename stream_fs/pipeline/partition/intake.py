"""Records of a partition between its input and the next commit."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from stream_fs.pipeline import events
from stream_fs.pipeline.chunker import Chunker
from stream_fs.pipeline.model import Model, UpdatedChunk, update_chunk
from stream_fs.pipeline.partition.commit import snapshot_due
from stream_fs.pipeline.partition.state import PartitionContext, SnapshotMark
from stream_fs.pipeline.settings import ChunkPolicy
from stream_fs.pipeline.transaction import Clock
from stream_fs.records import Message
from stream_fs.selector import State

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
        """The first chunk lingers at most `linger` seconds."""
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
        """Records that can be read and were not received, see `Input.unread`; None if unknown."""
        return self._context.input.unread(self._context.partition, self.chunker.position)

    def receive(self, messages: Sequence[Message], newest: int, policy: ChunkPolicy) -> None:
        """Add messages to the open chunk, which follows the chunk `newest`."""
        batch = self.chunker.add(messages)
        self._context.runtime.observe(
            events.RecordsRead(
                self._context.partition,
                good=len(batch.good),
                bad=Counter(bad.reason for bad in batch.bad),
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
                SnapshotMark.after(newest),
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

    def take_batch(self) -> list[UpdatedChunk]:
        """Remove the updated chunks from the buffer, and report them."""
        waiting, chunks = self.chunker.good + self.buffer.rows, []
        for chunk, seconds in self.buffer.take():
            waiting -= chunk.report.rows
            self.report_update(chunk, seconds, waiting, replayed=False)
            chunks.append(chunk)
        return chunks

    def report_update(
        self, chunk: UpdatedChunk, seconds: float, waiting: int, *, replayed: bool
    ) -> None:
        """Report an updated chunk, behind which `waiting` good records were received.

        The chunks before it are committed. Hook `updated`.
        """
        runtime, size = self._context.runtime, chunk.chunk_policy.records
        runtime.observe(
            events.ChunkUpdated(
                self._context.partition, chunk.report, seconds, replayed, waiting, size
            )
        )
        runtime.crash_hook("updated")

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
