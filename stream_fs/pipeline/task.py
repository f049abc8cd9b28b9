"""One input partition's life: take over, restore, replay, run; a state machine in short steps.

    taking_over ─ restoring ─ replaying ─ running ⇄ publishing

Everything that waits is a generator that yields; `advance` takes one step. A fenced task is done
for: `FencedError` leaves `advance`, and the owner of the task starts a new one.

While chunks are ranked and their transaction under way, both aside, the next ones are folded
already, if their records are there, but nothing of them is sent before that transaction is through:
what is published is the same as if each chunk had waited for the one before. A transaction that
takes long is nobody else's affair: the partition is paused at the input, so that the others can be
polled meanwhile.

Where the stream is behind, chunks wait for a moment for those behind them, and share a transaction
(`waiting`). Each has its own ranking; the progress is that of the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from stream_fs.checkpoint import Progress
from stream_fs.errors import BoundaryMoved, TransportError
from stream_fs.pipeline import events
from stream_fs.pipeline.chunker import Chunker
from stream_fs.pipeline.coming import InFlightBatch
from stream_fs.pipeline.model import Model, PublishableChunk, UpdatedChunk, announce, fold
from stream_fs.pipeline.ports import Input, Partition, Publisher, Transport
from stream_fs.pipeline.sending import BatchContent, SnapshotMark
from stream_fs.pipeline.settings import ChunkPolicy, StreamSettings
from stream_fs.pipeline.takeover import Takeover
from stream_fs.pipeline.transaction import (
    MOMENT,
    Failure,
    Runtime,
    Steps,
    TransactionRunner,
    retrying,
)
from stream_fs.pipeline.waiting import LingerBuffer, LingeringChunk
from stream_fs.records import Message
from stream_fs.selector import State
from stream_fs.wire.rankings.codec import has_digest
from stream_fs.wire.records.decoder import RecordDecoder

_SHORT_SECONDS: Final = 0.1
"""So long a transaction is waited for without a poll, where the next chunks are folded already: to
pause a partition costs what was fetched of it in advance, far more than a usual transaction."""


class PartitionTask:
    """The model, the open chunk and the publisher of one partition."""

    def __init__(
        self,
        partition: Partition,
        settings: StreamSettings,
        decoder: RecordDecoder,
        transport: Transport,
        source: Input,
        runtime: Runtime,
    ) -> None:
        self.partition = partition
        self._settings = settings
        self._input = source
        self._runtime = runtime
        self._publisher: Publisher = transport.publisher(partition)
        self._transactions = TransactionRunner(
            self._publisher, runtime.clock, self._failed, runtime.executor, runtime.sleep
        )
        self._sender = BatchContent(partition, settings, self._publisher, runtime.crash_hook)
        self._takeover = Takeover(
            partition, settings, transport, source, self._publisher, runtime.observe
        )
        self._decoder = decoder
        self._model: Model | None = None  # as committed
        self._coming: InFlightBatch | None = None
        self._waiting = LingerBuffer(settings.linger, runtime.clock)  # behind what is coming
        self._obstacle: Exception | None = None  # to the chunk behind those
        self._chunker: Chunker | None = None
        self._progress: Progress | None = None
        self._saved_cut: ChunkPolicy | None = None
        self._restore_error: str | None = None
        self._held = True  # the input delivers nothing of the partition
        self._work: Steps | None = self._restoring()
        self._enter("taking_over")

    @property
    def phase(self) -> events.Phase:
        """Where in its life the task is."""
        return self._phase

    @property
    def restore_error(self) -> str | None:
        """Why the last attempt to restore the model came to nothing; None once it is restored."""
        return self._restore_error

    @property
    def lag(self) -> int | None:
        """Records that can be read and were not, see `Input.unread`; None if unknown."""
        if self._chunker is None:
            return None
        return self._input.unread(self.partition, self._chunker.position)

    @property
    def busy(self) -> bool:
        """Whether `advance` has something to do now, or soon."""
        return self._work is not None or bool(self._waiting)

    def receive(self, messages: Sequence[Message]) -> None:
        """Take messages that follow those received before."""
        newest = self._newest
        if self._chunker is None or newest is None:
            return
        batch = self._chunker.add(messages)
        self._runtime.observe(
            events.RecordsRead(
                self.partition,
                good=len(batch.good),
                bad=Counter(bad.reason for bad in batch.bad),
                position=self._chunker.position,
                # Those are told as folded when they are published.
                waiting=self._chunker.good + self._waiting.rows,
                size=self._cut.first if newest.chunk == 0 else self._cut.records,
            )
        )

    def advance(self) -> bool:
        """One step; whether there is more to do at once."""
        self._waiting.turn()
        if self._work is None:
            folded = self._fold_next()
            if self._awaits_more:
                if not folded:
                    self._release()
                return folded
            chunks = self._waiting.take()
            for chunk in chunks:
                self._updated(chunk, replayed=False)
            self._work = self._publishing([chunk.folded for chunk in chunks])
        return self._step(self._work) or self._look_ahead()

    def _step(self, work: Steps) -> bool:
        """One step of the work; whether it is done."""
        try:
            next(work)
        except StopIteration:
            self._work = None
            return True
        except BaseException:
            # Perhaps between a commit and our taking note of it: a snapshot of what we know, see
            # `finish`, would take the partition back behind what is published.
            self._work = self._model = self._progress = None
            raise
        return False

    def finish(self, deadline: float) -> None:
        """Before an orderly end: publish what is being published, and commit a snapshot of it.

        A start that is being recorded is left to the next owner, with the first chunk.
        """
        while self._work is not None and self._coming is not None and self._progress is not None:
            left = deadline - self._runtime.clock()
            if left <= 0:
                return
            self._transactions.settle(left)
            self._step(self._work)
        if self._work is not None or self._model is None or self._progress is None:
            return
        if self._runtime.clock() >= deadline:  # others have used up the time
            return
        if self._progress.snapshots[0].chunk < self._model.state.chunk == self._progress.chunk:
            self._commit_snapshot(self._model, self._progress, deadline)

    def close(self) -> None:
        """Let go of the partition, without waiting; what is not committed is forgotten."""
        if self._work is not None:
            self._work.close()
        self._work = None
        self._transactions.leave()

    # --- taking over ---------------------------------------------------------------------------

    def _restoring(self) -> Steps:
        """Take over and restore, from the beginning again wherever the broker does not answer."""
        began = self._runtime.clock()
        yield from retrying(lambda: self._restore(began), self._runtime.clock, self._restore_failed)
        self._restore_error = None

    def _restore_failed(self, error: str) -> None:
        self._restore_error = error
        self._runtime.observe(events.RestoreFailed(self.partition, error))

    def _restore(self, began: float) -> Steps:
        taken = yield from self._takeover.attempt(
            self._transactions, self._sender, lambda: self._enter("restoring")
        )
        self._begin(taken.model, taken.progress)
        self._runtime.observe(
            events.Restored(
                self.partition,
                chunk=taken.model.state.chunk,
                behind=taken.behind,
                offset=taken.model.next,
                seconds=self._runtime.clock() - began,
                fallback=taken.fallback,
                migrated=taken.migrated,
            )
        )
        self._enter("replaying" if taken.behind else "running")
        self._release()

    def _begin(self, model: Model, progress: Progress | None) -> None:
        self._model, self._progress = model, progress
        self._saved_cut = None if progress is None else model.cut
        settled = model.next if progress is None else progress.next_offset
        self._chunker = Chunker(self._decoder, self._settings.dead_letters, model.next, settled)

    # --- chunks --------------------------------------------------------------------------------

    def _fold_next(self) -> bool:
        """Fold the next full chunk, if it is there and none has to be published first.

        Returns whether it was; it waits then to be published, unless an earlier life has done that.
        """
        if self._obstacle is not None and self._coming is None and not self._waiting:
            raise self._obstacle
        if not self._awaits_more:
            return False
        try:
            folded = self._folded()
        except Exception as error:
            if self._coming is None and not self._waiting:
                raise
            self._obstacle = error  # raised when those before it are through
            return False
        if folded is None:
            return False
        if self._replaying:
            self._updated(folded, replayed=True)
            self._replayed(folded.folded)
        else:
            self._waiting.add(*folded)
        return True

    def _folded(self) -> LingeringChunk | None:
        """The next full chunk folded into the newest state, and how many seconds that took."""
        newest = self._newest
        if self._chunker is None or newest is None:
            return None
        cut = self._cut
        ready = self._chunker.take(newest.chunk + 1, cut)
        if ready is None:
            if self._replaying:  # it will have the records that wait for it
                self._check_boundary(newest.chunk, self._chunker.reach)
            return None
        began = self._runtime.clock()
        return LingeringChunk(fold(newest, ready, cut), self._runtime.clock() - began)

    @property
    def _awaits_more(self) -> bool:
        """Whether what waits to be published, if anything, goes on waiting for another chunk.

        That of a snapshot is the last of its transaction, so that snapshots are as far apart.
        """
        if self._obstacle is not None:
            return False
        newest = self._waiting.newest
        if newest is None:
            return True
        return self._waiting.open and not self._has_snapshot(newest) and self._is_behind

    def _has_snapshot(self, chunk: UpdatedChunk) -> bool:
        """Whether a snapshot goes with a chunk, where it is the last of its transaction."""
        saved = SnapshotMark.of(self._progress, self._saved_cut)
        if self._coming is not None:
            last = SnapshotMark(self._coming.last.state.chunk, self._coming.last.cut)
            saved = last if self._sender.due(*last, saved) else saved
        return self._sender.due(chunk.state.chunk, chunk.cut, saved)

    @property
    def _is_behind(self) -> bool:
        """Whether the log has the records of another chunk already, as far as is known."""
        if self._chunker is None:
            return False
        return self._chunker.good + (self.lag or 0) >= self._cut.records

    def _look_ahead(self) -> bool:
        """Use the time that a transaction takes; whether to go on without a poll.

        What would not go into the next transaction is not folded, and nothing more is read.
        """
        if self._coming is None or self._phase != "running":
            return False
        if self._fold_next():
            return True
        if self._awaits_more:
            self._release()
            return False
        short = self._runtime.clock() - self._coming.ready < _SHORT_SECONDS
        if self._waiting and self._progress is not None and short:
            self._transactions.settle(MOMENT)
            return True
        self._hold()
        return False

    def _hold(self) -> None:
        """Let the input deliver nothing more, so that what waits here stays bounded."""
        if not self._held:
            self._held = True
            self._input.pause(self.partition)

    def _release(self) -> None:
        """Let the input deliver again, as there is room: from behind what was received."""
        if self._held and self._chunker is not None:
            self._held = False
            self._input.resume(self.partition, self._chunker.position)

    @property
    def _newest(self) -> State | None:
        """What the next chunk is folded into."""
        if (waiting := self._waiting.newest) is not None:
            return waiting.state
        if self._coming is not None:
            return self._coming.last.state
        return None if self._model is None else self._model.state

    @property
    def _replaying(self) -> bool:
        """Whether the next chunk was published by an earlier life."""
        return (
            self._model is not None
            and self._progress is not None
            and self._model.state.chunk < self._progress.chunk
        )

    @property
    def _cut(self) -> ChunkPolicy:
        """How the next chunk is cut: a replayed one as it was then, whatever is configured now."""
        if self._replaying and self._model is not None:
            return self._model.cut
        return self._settings.chunk_policy

    def _replayed(self, folded: UpdatedChunk) -> None:
        """A chunk that an earlier life has published: take it over, and compare the last one."""
        assert self._model is not None
        assert self._progress is not None
        outcome = self._announce(self._model, folded)
        self._check_boundary(outcome.model.state.chunk, outcome.model.next)
        self._model = outcome.model
        if outcome.model.state.chunk == self._progress.chunk:
            same = self._progress.fingerprint == self._settings.params.fingerprint
            if same and not self._is_published(outcome, self._progress):
                self._runtime.observe(
                    events.ReplayDiverged(self.partition, outcome.model.state.chunk)
                )
            self._enter("running")

    def _is_published(self, outcome: PublishableChunk, progress: Progress) -> bool:
        """Whether a replayed ranking is the one that the progress record names."""
        ranking = outcome.records[0].value or b""
        return has_digest(ranking, progress.digest, self._settings.output_format)

    def _check_boundary(self, chunk: int, reached: int) -> None:
        """Replayed chunks end where they were committed, or else refuse: records would be lost."""
        assert self._progress is not None
        committed = self._progress.next_offset
        if reached > committed or (chunk == self._progress.chunk and reached != committed):
            raise BoundaryMoved(self.partition, self._progress.chunk, committed, reached)

    def _announce(self, before: Model, folded: UpdatedChunk) -> PublishableChunk:
        """Rank a chunk, wherever that is done."""
        return announce(self._settings, self.partition, before, folded)

    def _updated(self, chunk: LingeringChunk, *, replayed: bool) -> None:
        """Tell of a folded chunk: not before those before it are through."""
        folded, seconds = chunk
        self._runtime.observe(
            events.ChunkUpdated(
                self.partition, folded.report, seconds, replayed, folded.cut.records
            )
        )
        self._runtime.crash_hook("updated")

    def _publishing(self, chunks: Sequence[UpdatedChunk]) -> Steps:
        """One transaction, tried until it is through or the task is fenced."""
        assert self._model is not None
        self._coming = coming = InFlightBatch(
            self._model, chunks, self._announce, self._runtime.clock
        )
        if self._progress is None:
            yield from self._starting(self._model)
        before = self._progress
        assert before is not None
        progress, size = yield from self._transactions.through(
            lambda: self._sender.chunks(
                [outcome for outcome, _ in coming.announced()], before, self._saved_cut
            )
        )
        self._runtime.crash_hook("committed")
        announced = coming.announced()
        last = announced[-1].outcome.model
        self._model, self._progress, self._saved_cut = last, progress, last.cut
        self._coming = None
        for outcome, seconds in announced:
            ends = outcome.model is last
            self._runtime.observe(
                events.ChunkCommitted(
                    self.partition,
                    ranking=outcome.ranking,
                    overlap=outcome.overlap,
                    missing=outcome.missing,
                    imputed=outcome.imputed,
                    start=outcome.start,
                    next_offset=outcome.model.next,
                    letters=outcome.letters,
                    snapshot_bytes=size if ends else 0,
                    seconds=self._transactions.ended - coming.ready if ends else None,
                    ranking_seconds=seconds,
                )
            )
        self._input.commit_group_offset({self.partition: last.next})
        self._runtime.crash_hook("advised")
        if coming.obstacle is not None:
            raise coming.obstacle
        if self._phase == "publishing":
            self._enter("running")

    def _starting(self, model: Model) -> Steps:
        """Record the start before the first chunk, however long the broker does not answer."""
        started = yield from self._transactions.through(lambda: self._sender.start(model))
        yield from retrying(
            lambda: self._takeover.check_others(self._transactions, self._sender),
            self._runtime.clock,
            lambda error: self._failed("retried", error),
        )
        self._progress = started

    def _failed(self, outcome: Failure, error: str) -> None:
        """Tell of a failed attempt, and take no more messages until one comes through."""
        self._runtime.observe(events.TransactionFailed(self.partition, outcome, error))
        if self._phase != "publishing":
            self._enter("publishing")
            self._hold()

    def _commit_snapshot(self, model: Model, progress: Progress, deadline: float) -> None:
        """A snapshot out of turn, so that the next owner has nothing to replay.

        One attempt: without it the next owner replays a few chunks, and nothing is lost.
        """
        try:
            left = deadline - self._runtime.clock()
            self._progress, size = self._transactions.once(
                lambda: self._sender.snapshot(model, progress), left
            )
        except (TransportError, TimeoutError) as error:
            self._runtime.observe(events.TransactionFailed(self.partition, "given_up", str(error)))
            return
        self._runtime.observe(events.SnapshotCommitted(self.partition, model.state.chunk, size))

    def _enter(self, phase: events.Phase) -> None:
        self._phase = phase
        self._runtime.observe(events.PhaseChanged(self.partition, phase))
