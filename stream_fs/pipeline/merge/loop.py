"""The loop of the merge: acquire it, then merge whenever models have advanced; in short steps.

    awaiting partitions ─ acquiring ─ restoring ─ refreshing ⇄ publishing

One member of the group runs it. What it publishes is a pure function of the snapshots that it
lists, so it advances as often as snapshots are written. Everything that waits is a generator that
yields, and `advance` takes a step of it. `FencedError` leaves `advance`: the owner of the loop
starts a new one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from stream_fs.checkpoint import MergeProgress
from stream_fs.errors import IncompatibleState, InvalidMessage
from stream_fs.pipeline import events
from stream_fs.pipeline.legacy_state import merge_migration_records
from stream_fs.pipeline.merge.message import PublishableMerge, build_merged_ranking, list_parts
from stream_fs.pipeline.merge.snapshot_cache import SnapshotCache
from stream_fs.pipeline.ports import Partition, Publisher, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.state_owner import find_merge_progress
from stream_fs.pipeline.transaction import Runtime, Steps, TransactionRunner, retrying, wait
from stream_fs.wire.rankings.message import Leading

TIME_SHARE = 0.1
"""The share of the process's time for refreshing snapshots, unless one step per turn takes more."""


class MergeLoop:
    """Holds the models of all partitions, and publishes their merged rankings."""

    def __init__(
        self,
        topics: Sequence[str],
        settings: StreamSettings,
        transport: Transport,
        runtime: Runtime,
        every: float,
    ) -> None:
        """Refreshes the models every `every` seconds.

        Its state is kept with that of the first partition of the first topic.
        """
        self._home = Partition(topics[0], 0)
        self._settings = settings
        self._transport = transport
        self._runtime = runtime
        self._every = every
        self._publisher: Publisher = transport.merge_publisher()
        self._transactions = TransactionRunner(self._publisher, runtime)
        self._cache = SnapshotCache(topics, settings, transport, runtime)
        self._progress: MergeProgress | None = None
        self._leading: Leading | None = None
        self._refused: object = None
        self._resting = False
        self._since = runtime.clock()
        self._work = self._run()

    @property
    def busy(self) -> bool:
        """Whether `advance` has work now, or soon."""
        return not self._resting

    def advance(self) -> None:
        """Take one step, and more if much time has passed since the last call.

        A refresh takes many steps, and has to end even if every turn of the process takes seconds.
        """
        clock = self._runtime.clock
        now = clock()
        until = now + TIME_SHARE * (now - self._since)
        self._step()
        while not self._resting and clock() < until:
            self._step()
        self._since = clock()

    def close(self) -> None:
        """Release the merge without waiting; what is not committed is discarded."""
        self._work.close()
        self._cache.close()
        self._transactions.release()

    def _step(self) -> None:
        failed = next(self._work)
        if failed is not None:
            self._runtime.observe(events.MergeFailed(failed.outcome, failed.error))

    def _run(self) -> Steps[None]:
        yield from self._retrying(self._await_partitions)
        yield from self._retrying(self._restore)
        while True:
            yield from self._retrying(self._merge)
            yield from self._rest()

    def _retrying(self, work: Callable[[], Steps[None]]) -> Steps[None]:
        return retrying(work, self._runtime.clock)

    def _rest(self) -> Steps[None]:
        self._resting = True
        yield from wait(self._runtime.clock, self._every)
        self._resting = False

    def _await_partitions(self) -> Steps[None]:
        """Wait for a second partition: the ranking of a single one is the stream's."""
        while self._cache.count_partitions() < 2:
            yield from self._rest()

    def _restore(self) -> Steps[None]:
        """Acquire the merge, and find the last merged ranking.

        Acquiring comes before anything that waits: it aborts what the previous owner left open,
        which the restore of the first partition has to wait for.
        """
        while not self._publisher.acquire():
            yield None
        self._progress = yield from self._find_progress()
        if self._progress is None or self._progress.owner is None:
            yield from self._migrate()
        last = 0 if self._progress is None else self._progress.sequence
        self._runtime.observe(events.MergeAcquired(last))

    def _find_progress(self) -> Steps[MergeProgress | None]:
        return find_merge_progress(self._transport, self._settings, self._home)

    def _migrate(self) -> Steps[None]:
        """Acquire the legacy transactional id, and migrate the merge if it is a legacy one."""
        previous = self._transport.merge_publisher(legacy=True)
        transactions = self._transactions.for_publisher(previous)
        try:
            while not previous.acquire():
                yield None
            self._progress = legacy = yield from self._find_progress()
            if legacy is not None and legacy.owner is None:
                records = merge_migration_records(self._settings, self._home, legacy)
                yield from transactions.run_until_committed(lambda: previous.send(records))
        finally:
            transactions.release()

    def _merge(self) -> Steps[None]:
        """Refresh all models, and publish a merged ranking if any has advanced.

        Hooks: `merge begun`, `merge sent`, `merge committed`.
        """
        yield from self._cache.refresh()
        built = self._build()
        if built is None:
            return
        content, seconds = built
        yield None
        yield from self._transactions.run_until_committed(lambda: self._send(content))
        self._runtime.crash_hook("merge committed")
        self._progress, self._leading = content.progress, content.leading
        self._runtime.observe(
            events.MergedCommitted(
                sequence=content.progress.sequence,
                ranking=content.ranking,
                parts=content.progress.parts,
                overlap=content.overlap,
                as_of=content.as_of,
                partitions=self._cache.partitions,
                seconds=seconds,
            )
        )

    def _build(self) -> tuple[PublishableMerge, float] | None:
        """The next merged ranking, and the seconds that it took; None if no model has advanced.

        A partition of the last merged ranking that cannot be read for now is waited for.
        """
        models, before = self._cache.models, self._progress
        parts = list_parts(models)
        known = () if before is None else before.parts
        unread = self._cache.unread & {Partition(*part[:2]) for part in known}
        if not models or unread or parts in (known, self._refused):
            return None
        began = self._runtime.clock()
        try:
            content = build_merged_ranking(
                self._settings, self._home, models, before, self._leading
            )
        except (IncompatibleState, InvalidMessage) as error:
            self._refused = parts
            self._runtime.observe(events.MergeFailed("refused", str(error)))
            return None
        return content, self._runtime.clock() - began

    def _send(self, content: PublishableMerge) -> None:
        self._runtime.crash_hook("merge begun")
        self._publisher.send(content.records)
        self._runtime.crash_hook("merge sent")
