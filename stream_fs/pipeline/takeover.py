"""Taking over a partition: ownership, then the model as the last owner has left it."""

from __future__ import annotations

from collections.abc import Callable, Generator
from dataclasses import dataclass, replace

from stream_fs.checkpoint import Progress, StateKeys
from stream_fs.errors import OffsetGone
from stream_fs.pipeline import events
from stream_fs.pipeline.legacy import legacy_keys
from stream_fs.pipeline.neighbours import Neighbours
from stream_fs.pipeline.outcome import Model, model_of
from stream_fs.pipeline.ownership import LocatedState, acquire
from stream_fs.pipeline.ports import Input, Outbox, Partition, StateLog, Transport
from stream_fs.pipeline.restore import newest_usable
from stream_fs.pipeline.sending import Sender
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.transaction import Transactions
from stream_fs.selector import initial_state


@dataclass(frozen=True, slots=True, eq=False)
class Taken:
    """What was found; before the first chunk, an empty model and where it begins.

    `fallback` says why the newest snapshot was passed over, `migrated` whether the state was a
    legacy one.
    """

    model: Model
    progress: Progress
    fallback: str | None
    migrated: bool = False

    @property
    def behind(self) -> int:
        """Chunks that were published after the snapshot, and have to be folded in again."""
        return self.progress.chunk - self.model.state.chunk


class Takeover:
    """Attempts to take over one partition, in short steps."""

    def __init__(
        self,
        partition: Partition,
        settings: StreamSettings,
        transport: Transport,
        source: Input,
        outbox: Outbox,
        observe: events.Observer,
        neighbours: Neighbours,
    ) -> None:
        self._partition = partition
        self._settings = settings
        self._transport = transport
        self._input = source
        self._outbox = outbox
        self._observe = observe
        self._neighbours = neighbours

    def attempt(
        self, transactions: Transactions, sender: Sender, owned: Callable[[], None]
    ) -> Generator[None, None, Taken]:
        """Take over and restore; `owned` is called in between. Raises where a broker is silent."""
        while not self._outbox.take_over():
            yield
        owned()
        taken = yield from self._restored(transactions, sender)
        model, progress = taken.model, taken.progress
        self._check_input(model.next)
        self._compare_group(progress.next_offset)
        return taken

    def _restored(self, transactions: Transactions, sender: Sender) -> Generator[None, None, Taken]:
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
            if progress is not None and progress.chunk:
                return (yield from self._read(log, found.keys, progress))
            model = self._empty_model(progress)
            if progress is None or progress.fingerprint != self._settings.params.fingerprint:
                progress = yield from transactions.through(lambda: sender.start(model))
            yield from self._neighbours.check(log, partition)
            return Taken(model, progress, None)
        finally:
            log.close()

    def _migrated(
        self,
        log: StateLog,
        found: LocatedState,
        previous: Outbox,
        transactions: Transactions,
        sender: Sender,
    ) -> Generator[None, None, Taken]:
        """The model of a legacy state, written under the owner's keys through its outbox."""
        runner, progress = transactions.of(previous), found.progress
        assert progress is not None
        try:
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
        restored, fallback = yield from newest_usable(log, keys, progress, self._settings.params)
        model = model_of(restored)
        if fallback is not None:
            # The next snapshot takes the place of the damaged one, not of the whole one.
            sound = [at for at in progress.snapshots if at.chunk <= model.state.chunk]
            progress = replace(progress, snapshots=tuple(sound))
        return Taken(model, progress, fallback)

    def _empty_model(self, progress: Progress | None) -> Model:
        """The model before the first chunk, of whose state nothing depends on the parameters."""
        state = initial_state(self._settings.params, self._settings.origin(self._partition))
        if progress is not None:
            return Model(state, progress.next_offset, None, self._settings.cut)
        low, high = self._input.bounds(self._partition)
        start = low if self._settings.start == "earliest" else high
        return Model(state, start, None, self._settings.cut)

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
        advised = self._input.advised(self._partition)
        if advised is not None and advised != offset:
            self._observe(events.OffsetsDiffer(self._partition, group=advised, state=offset))
            self._input.advise({self._partition: offset})
