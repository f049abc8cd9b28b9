"""Taking over a partition: ownership, then the model as the last owner has left it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import dataclass, replace

from stream_fs.checkpoint import Progress, StateKeys
from stream_fs.errors import ForeignState, OffsetGone
from stream_fs.pipeline import events
from stream_fs.pipeline.checkpoint_reader import read_usable_snapshot
from stream_fs.pipeline.legacy_state import legacy_keys
from stream_fs.pipeline.model import Model, model_of
from stream_fs.pipeline.ports import Input, Partition, Publisher, StateLog, Transport
from stream_fs.pipeline.sending import BatchContent
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.state_owner import LocatedState, acquire, locate
from stream_fs.pipeline.transaction import Steps, TransactionRunner
from stream_fs.selector import initial_state


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """What was found; `progress` is None where nothing was committed yet.

    `fallback` says why the newest snapshot was passed over, `migrated` whether the state was a
    legacy one.
    """

    model: Model
    progress: Progress | None
    fallback: str | None
    migrated: bool = False

    @property
    def behind(self) -> int:
        """Chunks that were published after the snapshot, and have to be folded in again."""
        return 0 if self.progress is None else self.progress.chunk - self.model.state.chunk


class Takeover:
    """Attempts to take over one partition, in short steps."""

    def __init__(
        self,
        partition: Partition,
        settings: StreamSettings,
        transport: Transport,
        source: Input,
        publisher: Publisher,
        observe: events.Observer,
    ) -> None:
        self._partition = partition
        self._settings = settings
        self._transport = transport
        self._input = source
        self._publisher = publisher
        self._observe = observe

    def attempt(
        self, transactions: TransactionRunner, sender: BatchContent, owned: Callable[[], None]
    ) -> Generator[None, None, Taken]:
        """Take over and restore; `owned` is called in between. Raises where a broker is silent."""
        while not self._publisher.acquire():
            yield
        owned()
        taken = yield from self._restored(transactions, sender)
        model, progress = taken.model, taken.progress
        self._check_input(model.next)
        if progress is None and self._settings.start == "latest":
            progress = yield from self.start(transactions, sender, model)
        self._compare_group(model.next if progress is None else progress.next_offset)
        return replace(taken, progress=progress)

    def start(
        self, transactions: TransactionRunner, sender: BatchContent, model: Model
    ) -> Generator[None, None, Progress]:
        """Record the start of a partition; raises what `check_others` does."""
        progress = yield from transactions.through(lambda: sender.start(model))
        yield from self.check_others(transactions, sender)
        return progress

    def check_others(self, transactions: TransactionRunner, sender: BatchContent) -> Steps:
        """Withdraw the start, and raise `ForeignState`, if another stream has started, too.

        That is one with the same name or group. The start is recorded before this: of two streams
        that start at the same time, at least one finds the other.
        """
        try:
            yield from self._locate_others()
        except ForeignState:
            yield from transactions.through(sender.withdraw)
            raise

    def _locate_others(self) -> Steps:
        with closing(self._transport.state_log(self._partition)) as log:
            found = yield from locate(
                log, self._partition, self._settings.owner, self._transport.group_offset
            )
            found.check_others()

    def _restored(
        self, transactions: TransactionRunner, sender: BatchContent
    ) -> Generator[None, None, Taken]:
        partition, owner = self._partition, self._settings.owner
        log = self._transport.state_log(partition)
        try:
            found, previous = yield from acquire(log, self._transport, partition, owner)
            if previous is not None:
                return (yield from self._migrated(log, found, previous, transactions, sender))
            found.check()
            if not found.marked:
                sender.mark()
            progress = found.progress
            if progress is None:
                return Taken(self._fresh_model(), None, None)
            return (yield from self._read(log, found.keys, progress))
        finally:
            log.close()

    def _migrated(
        self,
        log: StateLog,
        found: LocatedState,
        previous: Publisher,
        transactions: TransactionRunner,
        sender: BatchContent,
    ) -> Generator[None, None, Taken]:
        """The model of a legacy state, written under the owner's keys through its publisher."""
        runner, progress = transactions.of(previous), found.progress
        assert progress is not None
        try:
            found.check()
            taken = yield from self._read(log, found.keys, progress)
            legacy = yield from legacy_keys(log, self._partition)
            migrated = yield from runner.through(
                lambda: sender.of(previous).migrate(taken.model, progress, legacy)
            )
        finally:
            runner.leave()
        return replace(taken, progress=migrated, migrated=True)

    def _read(
        self, log: StateLog, keys: StateKeys, progress: Progress
    ) -> Generator[None, None, Taken]:
        """The model of the newest snapshot that is whole."""
        restored, fallback = yield from read_usable_snapshot(
            log, keys, progress, self._settings.params
        )
        model = model_of(restored)
        if fallback is not None:
            # The next snapshot takes the place of the damaged one, not of the whole one.
            sound = [at for at in progress.snapshots if at.chunk <= model.state.chunk]
            progress = replace(progress, snapshots=tuple(sound))
        return Taken(model, progress, fallback)

    def _fresh_model(self) -> Model:
        low, high = self._input.bounds(self._partition)
        state = initial_state(self._settings.params, self._settings.origin(self._partition))
        start = low if self._settings.start == "earliest" else high
        return Model(state, start, None, self._settings.chunk_policy)

    def _check_input(self, offset: int) -> None:
        low, high = self._input.bounds(self._partition)
        if not low <= offset <= high:
            raise OffsetGone(
                f"the model of {self._partition} continues at offset {offset}, but the topic holds "
                f"only [{low}, {high}): going on would skip records. Either begin anew with "
                f"`stream-fs checkpoint reset {self._partition.flags}`, or accept the gap with "
                f"`stream-fs checkpoint reset {self._partition.flags} --keep-model "
                f"--to-offset {low}`"
            )

    def _compare_group(self, offset: int) -> None:
        advised = self._input.group_offset(self._partition)
        if advised is not None and advised != offset:
            self._observe(events.GroupOffsetDiffers(self._partition, group=advised, state=offset))
            self._input.commit_group_offset({self._partition: offset})
