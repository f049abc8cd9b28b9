"""The merge's life: take over, then merge whenever models have advanced; in short steps.

    alone ─ taking over ─ restoring ─ looking ⇄ publishing

One member of the group does it. What it publishes is a pure function of the snapshots that it
lists, so models advance in it as often as their snapshots are written. Everything that waits is a
generator that yields; `advance` takes one step. A fenced merge is done for, like a fenced task.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence

from stream_fs.checkpoint import MergeProgress
from stream_fs.errors import IncompatibleState, InvalidMessage
from stream_fs.pipeline import events
from stream_fs.pipeline.legacy_state import merge_migration_records
from stream_fs.pipeline.merge.message import PublishableMerge, merged, parts_of
from stream_fs.pipeline.merge.snapshot_cache import SnapshotCache
from stream_fs.pipeline.ports import Partition, Publisher, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.state_owner import find_merge
from stream_fs.pipeline.transaction import (
    Failure,
    Runtime,
    Steps,
    TransactionRunner,
    retrying,
    wait,
)
from stream_fs.wire.rankings.message import Leading

SHARE = 0.1
"""Of its process's time, so much is for looking at partitions, or else a step in every turn."""


class MergeLoop:
    """The models of all partitions, and the publisher of what they come to together."""

    def __init__(
        self,
        topics: Sequence[str],
        settings: StreamSettings,
        transport: Transport,
        runtime: Runtime,
        every: float,
    ) -> None:
        """`every` so many seconds it looks at the models; its state lies with the first topic's."""
        self._home = Partition(topics[0], 0)
        self._settings = settings
        self._transport = transport
        self._runtime = runtime
        self._every = every
        self._publisher: Publisher = transport.merge_publisher()
        self._transactions = TransactionRunner(
            self._publisher, runtime.clock, self._failed, runtime.executor, runtime.sleep
        )
        self._gathering = SnapshotCache(topics, settings, transport, runtime.clock, runtime.observe)
        self._progress: MergeProgress | None = None
        self._leading: Leading | None = None
        self._refused: object = None
        self._resting = False
        self._since = runtime.clock()
        self._work = self._life()

    @property
    def busy(self) -> bool:
        """Whether `advance` has something to do now, or soon."""
        return not self._resting

    def advance(self) -> None:
        """One step, and more where others have taken their time since the last call.

        A look takes many steps, and must come to its end, too, where every turn takes seconds.
        """
        now = self._runtime.clock()
        until = now + SHARE * (now - self._since)
        next(self._work)
        while not self._resting and self._runtime.clock() < until:
            next(self._work)
        self._since = self._runtime.clock()

    def close(self) -> None:
        """Let go; what is not committed is forgotten."""
        self._work.close()
        self._gathering.close()
        self._transactions.leave()

    def _life(self) -> Steps:
        yield from self._trying(self._await_company)
        yield from self._trying(self._restore)
        while True:
            yield from self._trying(self._round)
            yield from self._rest()

    def _trying(self, work: Callable[[], Steps]) -> Steps:
        """From the beginning again wherever the broker does not answer."""
        return retrying(work, self._runtime.clock, lambda error: self._failed("retried", error))

    def _rest(self) -> Steps:
        self._resting = True
        yield from wait(self._runtime.clock, self._every)
        self._resting = False

    def _await_company(self) -> Steps:
        """With a single partition, its ranking is the stream's: nothing is merged or owned."""
        while self._gathering.count() < 2:
            yield from self._rest()

    def _restore(self) -> Steps:
        """Take over, and find the last merged ranking.

        Taking over comes before anything that waits: it voids what the previous owner left open,
        which whoever restores the partition at home has to wait for.
        """
        while not self._publisher.acquire():
            yield
        self._progress = yield from self._find_progress()
        if self._progress is None or self._progress.owner is None:
            yield from self._migrate()
        last = 0 if self._progress is None else self._progress.sequence
        self._runtime.observe(events.MergeAcquired(last))

    def _find_progress(self) -> Generator[None, None, MergeProgress | None]:
        return find_merge(self._transport, self._settings, self._home)

    def _migrate(self) -> Steps:
        """Acquire the legacy identity, and migrate the merge if it is a legacy one."""
        previous = self._transport.merge_publisher(legacy=True)
        transactions = self._transactions.of(previous)
        try:
            while not previous.acquire():
                yield
            self._progress = legacy = yield from self._find_progress()
            if legacy is not None and legacy.owner is None:
                records = merge_migration_records(self._settings, self._home, legacy)
                yield from transactions.through(lambda: previous.send(records))
        finally:
            transactions.leave()

    def _round(self) -> Steps:
        """Look at every partition, and publish what is new."""
        yield from self._gathering.look()
        outcome = self._outcome()
        if outcome is None:
            return
        yield
        yield from self._transactions.through(lambda: self._send(outcome[0]))
        self._runtime.crash_hook("merge committed")
        self._committed(*outcome)

    def _outcome(self) -> tuple[PublishableMerge, float] | None:
        """What is to be published, and the seconds that it took; None where there is nothing new.

        A partition that was in the last merged ranking, and cannot be read for a while, is waited
        for.
        """
        models, before = self._gathering.models, self._progress
        parts = parts_of(models)
        known = () if before is None else before.parts
        waiting = self._gathering.unread & {Partition(*part[:2]) for part in known}
        if not models or waiting or parts in (known, self._refused):
            return None
        began = self._runtime.clock()
        try:
            outcome = merged(self._settings, self._home, models, before, self._leading)
        except (IncompatibleState, InvalidMessage) as error:
            self._refused = parts
            self._runtime.observe(events.MergeFailed("refused", str(error)))
            return None
        return outcome, self._runtime.clock() - began

    def _send(self, outcome: PublishableMerge) -> None:
        self._runtime.crash_hook("merge begun")
        self._publisher.send(outcome.records)
        self._runtime.crash_hook("merge sent")

    def _committed(self, outcome: PublishableMerge, seconds: float) -> None:
        self._progress, self._leading = outcome.progress, outcome.leading
        self._runtime.observe(
            events.MergedCommitted(
                sequence=outcome.progress.sequence,
                ranking=outcome.ranking,
                parts=outcome.progress.parts,
                overlap=outcome.overlap,
                as_of=outcome.as_of,
                partitions=self._gathering.partitions,
                seconds=seconds,
            )
        )

    def _failed(self, outcome: Failure, error: str) -> None:
        self._runtime.observe(events.MergeFailed(outcome, error))
