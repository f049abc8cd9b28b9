"""The states of a partition before it runs: acquire it, restore its model, replay what follows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace

from stream_fs.checkpoint import Progress, StateKeys
from stream_fs.errors import BoundaryMoved, OffsetGone, RetriableError
from stream_fs.pipeline import events
from stream_fs.pipeline.checkpoint_reader import read_usable_snapshot
from stream_fs.pipeline.legacy_state import legacy_keys, migration_records
from stream_fs.pipeline.model import Model, decode_model, update_chunk
from stream_fs.pipeline.partition.commit import build_messages, record_start, send_model
from stream_fs.pipeline.partition.intake import Intake
from stream_fs.pipeline.partition.running import Idle, Receiving
from stream_fs.pipeline.partition.state import (
    Base,
    Committed,
    PartitionContext,
    PartitionState,
    Unstarted,
)
from stream_fs.pipeline.ports import Publisher, StateLog
from stream_fs.pipeline.state_owner import LocatedState, acquire_state
from stream_fs.pipeline.transaction import Steps
from stream_fs.records import Message
from stream_fs.selector import initial_state
from stream_fs.wire.rankings.codec import has_digest


@dataclass(frozen=True, slots=True, eq=False)
class Attempts:
    """Attempts to recover a partition: when the first began, and the delays between them."""

    began: float
    delays: Iterator[float]


class Recovering(PartitionState):
    """A state in which the broker may fail to answer; recovery then starts over."""

    def __init__(self, context: PartitionContext, attempts: Attempts) -> None:
        self._context = context
        self._attempts = attempts

    def _back_off(self, error: RetriableError) -> PartitionState:
        context = self._context
        context.runtime.observe(events.RestoreFailed(context.partition, str(error)))
        return Backoff(self, context, self._attempts, str(error))


class Acquiring(Recovering):
    """The transactional id is being acquired, which fences the previous owner."""

    phase = "taking_over"

    def advance(self) -> tuple[PartitionState, bool]:
        """Call the broker once."""
        try:
            acquired = self._context.publisher.acquire()
        except RetriableError as error:
            return self._back_off(error), False
        if not acquired:
            return self, False
        return Restoring(self._context, self._attempts), True


class Restoring(Recovering):
    """The state is being read."""

    phase = "restoring"

    def __init__(self, context: PartitionContext, attempts: Attempts) -> None:
        super().__init__(context, attempts)
        self._steps = restore(context)

    def advance(self) -> tuple[PartitionState, bool]:
        """Read a little."""
        context = self._context
        try:
            failed = next(self._steps)
        except RetriableError as error:
            return self._back_off(error), False
        except StopIteration as end:
            return self._restored(end.value), True
        if failed is not None:
            context.runtime.observe(
                events.TransactionFailed(context.partition, failed.outcome, failed.error)
            )
        return self, False

    def close(self) -> None:
        """End the generator that reads."""
        self._steps.close()

    def _restored(self, restored: RestoredPartition) -> PartitionState:
        context, base = self._context, restored.base
        model = base.model
        context.runtime.observe(
            events.Restored(
                context.partition,
                chunk=model.state.chunk,
                behind=restored.behind,
                offset=model.next_offset,
                seconds=context.runtime.clock() - self._attempts.began,
                fallback=restored.fallback,
                migrated=restored.migrated,
            )
        )
        intake = Intake(context, model, settled=base.next_offset)
        intake.resume()
        if isinstance(base, Committed) and restored.behind:
            return Replaying(context, intake, model, base.progress)
        return Idle(context, intake, base)


class Backoff(PartitionState):
    """The broker did not answer; the next attempt begins after a delay."""

    def __init__(
        self, failed: PartitionState, context: PartitionContext, attempts: Attempts, error: str
    ) -> None:
        self.phase = failed.phase
        self.error = error
        self._context = context
        self._attempts = attempts
        self._until = context.runtime.clock() + next(attempts.delays)

    def advance(self) -> tuple[PartitionState, bool]:
        """Wait for the next attempt."""
        if self._context.runtime.clock() < self._until:
            return self, False
        return Acquiring(self._context, self._attempts), True


class Replaying(Receiving):
    """Chunks that were committed after the snapshot are updated again, and not published."""

    phase = "replaying"

    def __init__(
        self, context: PartitionContext, intake: Intake, model: Model, target: Progress
    ) -> None:
        """The model is behind the progress `target`."""
        super().__init__(context, intake)
        self._model = model
        self._target = target

    @property
    def busy(self) -> bool:
        """Whether there is work: only when records arrive."""
        return False

    def receive(self, messages: Sequence[Message]) -> None:
        """Add messages to the open chunk, which is being replayed."""
        self.intake.receive(messages, self._model.state.chunk, self._model.chunk_policy)

    def advance(self) -> tuple[PartitionState, bool]:
        """Update the next chunk, formed by the policy of its time, not by that of today."""
        context, before = self.context, self._model
        policy = before.chunk_policy
        ready = self.intake.chunker.take(before.state.chunk + 1, policy)
        if ready is None:
            # It will have at least the records that are there.
            self._check_boundary(before.state.chunk, self.intake.chunker.reach)
            self.intake.resume()
            return self, False
        began = context.runtime.clock()
        updated = update_chunk(before.state, ready, policy)
        seconds = context.runtime.clock() - began
        self.intake.report_update(updated, seconds, self.intake.chunker.good, replayed=True)
        content = build_messages(context.settings, context.partition, before, updated)
        self._model = model = content.model
        self._check_boundary(model.state.chunk, model.next_offset)
        if model.state.chunk < self._target.chunk:
            return self, True
        same = self._target.fingerprint == context.settings.params.fingerprint
        ranking = content.records[0].value or b""
        if same and not has_digest(ranking, self._target.digest, context.settings.output_format):
            context.runtime.observe(events.ReplayDiverged(context.partition, model.state.chunk))
        return Idle(context, self.intake, Committed(model, self._target)), True

    def _check_boundary(self, chunk: int, reached: int) -> None:
        """Refuse replayed chunks that end elsewhere than committed ones: records would be lost."""
        target = self._target
        committed = target.next_offset
        if reached > committed or (chunk == target.chunk and reached != committed):
            raise BoundaryMoved(self.context.partition, target.chunk, committed, reached)


@dataclass(frozen=True, slots=True, eq=False)
class RestoredPartition:
    """What was restored.

    `fallback` says why the newest snapshot could not be used, if so; `migrated`, whether it was a
    legacy state.
    """

    base: Base
    fallback: str | None = None
    migrated: bool = False

    @property
    def behind(self) -> int:
        """Chunks that were committed after the snapshot, and have to be replayed."""
        if isinstance(self.base, Unstarted):
            return 0
        return self.base.progress.chunk - self.base.model.state.chunk


def restore(context: PartitionContext) -> Steps[RestoredPartition]:
    """Restore a partition whose transactional id is acquired.

    1. Read the model that the last owner left; migrate a legacy state.
    2. Refuse to continue at an offset that the input does not hold.
    3. Record the start of a partition that starts at its end.
    4. Overwrite a group offset that differs.
    """
    restored = yield from _read_state(context)
    model = restored.base.model
    _check_input(context, model.next_offset)
    if isinstance(restored.base, Unstarted) and context.settings.start == "latest":
        started = yield from record_start(restored.base, context)
        restored = replace(restored, base=started)
    _compare_group_offset(context, restored.base.next_offset)
    return restored


def _read_state(context: PartitionContext) -> Steps[RestoredPartition]:
    partition, owner = context.partition, context.settings.owner
    with closing(context.transport.state_log(partition)) as log:
        found, legacy_publisher = yield from acquire_state(log, context.transport, partition, owner)
        if legacy_publisher is not None:
            return (yield from _migrate(context, log, found, legacy_publisher))
        found.check()
        progress = found.progress
        if progress is None:
            return RestoredPartition(Unstarted(_fresh_model(context), found.marked))
        return (yield from _read_model(context, log, found.keys, progress))


def _migrate(
    context: PartitionContext, log: StateLog, found: LocatedState, legacy_publisher: Publisher
) -> Steps[RestoredPartition]:
    """The model of a legacy state, committed under the owner's keys by the legacy publisher."""
    transactions, progress = context.transactions.for_publisher(legacy_publisher), found.progress
    assert progress is not None
    try:
        found.check()
        restored = yield from _read_model(context, log, found.keys, progress)
        legacy = yield from legacy_keys(log, context.partition)
        model = restored.base.model
        migrated = yield from transactions.run_until_committed(
            lambda: _send_migration(context, legacy_publisher, model, progress, legacy)
        )
    finally:
        transactions.release()
    return replace(restored, base=Committed(model, migrated), migrated=True)


def _send_migration(
    context: PartitionContext,
    publisher: Publisher,
    model: Model,
    progress: Progress,
    legacy: Sequence[bytes],
) -> Progress:
    """Send the model under the owner's keys, and delete it under the legacy keys."""
    publisher.send(migration_records(context.settings, context.partition, legacy))
    owned = replace(progress, snapshots=(), owner=context.settings.owner)
    return send_model(context, publisher, model, owned).progress


def _read_model(
    context: PartitionContext, log: StateLog, keys: StateKeys, progress: Progress
) -> Steps[RestoredPartition]:
    """The model of the newest snapshot that is whole."""
    restored, fallback = yield from read_usable_snapshot(
        log, keys, progress, context.settings.params
    )
    model = decode_model(restored)
    if fallback is not None:
        # The next snapshot replaces the damaged one, not the whole one.
        sound = [at for at in progress.snapshots if at.chunk <= model.state.chunk]
        progress = replace(progress, snapshots=tuple(sound))
    return RestoredPartition(Committed(model, progress), fallback)


def _fresh_model(context: PartitionContext) -> Model:
    settings = context.settings
    low, high = context.input.bounds(context.partition)
    state = initial_state(settings.params, settings.origin(context.partition))
    start = low if settings.start == "earliest" else high
    return Model(state, start, None, settings.chunk_policy)


def _check_input(context: PartitionContext, offset: int) -> None:
    partition = context.partition
    low, high = context.input.bounds(partition)
    if not low <= offset <= high:
        reset = f"`stream-fs checkpoint reset {partition.flags}"
        raise OffsetGone(
            f"the model of {partition} continues at offset {offset}, but the topic holds only "
            f"[{low}, {high}): continuing would skip records. Either begin with an empty model "
            f"with {reset}`, or accept the gap with {reset} --keep-model --to-offset {low}`"
        )


def _compare_group_offset(context: PartitionContext, offset: int) -> None:
    partition = context.partition
    committed = context.input.group_offset(partition)
    if committed is not None and committed != offset:
        context.runtime.observe(events.GroupOffsetDiffers(partition, group=committed, state=offset))
        context.input.commit_group_offset({partition: offset})
