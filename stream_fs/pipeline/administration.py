"""What an operator may do to the state of a partition: inspect, reset, export and import it.

Every change acquires the transactional id of the partition before it reads anything: that fences a
running service, so nothing is committed between what is read here and what is written. The service
acquires the partition again, and continues from the new state.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from stream_fs.checkpoint import Owner, Progress, SnapshotPlace, decode, encode
from stream_fs.checkpoint.files import Export
from stream_fs.errors import CorruptSnapshot, ForeignState, InvalidParameter
from stream_fs.pipeline.outcome import (
    Model,
    extra_of,
    migration_records,
    model_of,
    progress_record,
    snapshot_records,
    unranked,
)
from stream_fs.pipeline.ports import Outbox, Outgoing, Partition, StateLog, Transport
from stream_fs.pipeline.restore import (
    FoundState,
    find_acquired,
    find_state,
    legacy_keys,
    newest_usable,
)
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.selector import initial_state

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a partition stands: its progress (None before the first chunk), and the input's ends.

    The input holds the offsets [first, end). Without a progress, `others` are the owners of other
    states of the partition in the same topic, and `legacy_stream` is the stream of a legacy one.
    """

    partition: Partition
    progress: Progress | None
    first: int
    end: int
    others: tuple[Owner, ...] = ()
    legacy_stream: str | None = None

    @property
    def next_offset(self) -> int:
        """Where it continues; before the first chunk, where the input begins."""
        return self.first if self.progress is None else self.progress.next_offset

    @property
    def others_text(self) -> str:
        """The owners of other states, in words; empty where there are none."""
        legacy = [] if self.legacy_stream is None else [f"stream {self.legacy_stream!r}"]
        return ", ".join([*map(str, self.others), *legacy])

    def check(self, offset: int) -> None:
        """Raise `InvalidParameter` where the input does not have the offset."""
        if not self.first <= offset <= self.end:
            raise InvalidParameter(
                f"offset {offset} is not in {self.partition}, which holds "
                f"[{self.first}, {self.end}); name one that is with --to-offset"
            )

    def begun(self) -> Progress:
        """The progress; `InvalidParameter` where there is none."""
        if self.progress is not None:
            return self.progress
        others = self.others_text
        raise InvalidParameter(
            f"{self.partition} has no model yet: its first chunk is not complete"
            if not others
            else f"{self.partition} has no model of this stream, but its state topic has one of "
            f"{others}: use the configuration with that name and group"
        )


class Taken(NamedTuple):
    """How a partition goes on after an import."""

    offset: int
    chunk: int
    """The last chunk that was published."""
    behind: int
    """How many of the last chunks are not in the model."""


def standing(transport: Transport, settings: StreamSettings, partition: Partition) -> Standing:
    """Look, and change nothing."""
    with closing(transport.state_log(partition)) as log:
        found = _to_the_end(find_state(log, partition, settings.owner))
    return _standing(transport, found)


def foreign_states(
    transport: Transport, settings: StreamSettings, partitions: Sequence[Partition]
) -> list[str]:
    """A sentence for every partition that this stream would refuse for its state's owner."""
    refusals = []
    for partition in partitions:
        with closing(transport.state_log(partition)) as log:
            found = _to_the_end(find_state(log, partition, settings.owner))
        try:
            found.check_owner()
        except ForeignState as refusal:
            refusals.append(str(refusal))
    return refusals


def forget(transport: Transport, settings: StreamSettings, partition: Partition) -> None:
    """Let the partition begin anew where a new one begins (`start`), with an empty model.

    Raises `InvalidParameter` where the state topic has another owner's state, and none of this one.
    """
    with _acquired(transport, settings, partition) as acquired:
        if acquired.standing.others_text:
            acquired.standing.begun()
        erased = Outgoing(
            settings.state_topics[partition.topic],
            settings.keys(partition).progress,
            None,
            (),
            partition.number,
        )
        with acquired.transaction() as outbox:
            outbox.send([erased])


def begin_at(
    transport: Transport,
    settings: StreamSettings,
    partition: Partition,
    offset: int,
    *,
    keep_model: bool,
) -> None:
    """Let the partition continue at another offset of its input.

    With `keep_model` the model and the sequence of the rankings go on, and the records in between
    are not in it; otherwise it begins with an empty model, and the sequence with 1. Raises
    `InvalidParameter` where the input does not have the offset, or there is no model to keep.
    """
    with _acquired(transport, settings, partition) as acquired:
        acquired.standing.check(offset)
        if keep_model:
            progress = acquired.standing.begun()
            model = _at(acquired.model(progress), progress.chunk, offset)
        else:
            state = initial_state(settings.params, settings.origin(partition))
            model = Model(state, offset, None, settings.cut)
        acquired.install(model)


def exported(transport: Transport, settings: StreamSettings, partition: Partition) -> Export:
    """The model of a partition and how far its rankings are, which may be some chunks further.

    Nothing is acquired, and a running service goes on: where compaction has overtaken the snapshot,
    a newer one is read. Raises `InvalidParameter` before the first chunk, and what `newest_usable`
    does.
    """
    before: Progress | None = None
    while True:
        with closing(transport.state_log(partition)) as log:
            found = _to_the_end(find_state(log, partition, settings.owner))
            progress = _standing(transport, found).begun()
            try:
                restored, _ = _to_the_end(newest_usable(log, found.keys, progress, settings.params))
            except CorruptSnapshot:
                if progress == before:
                    raise
                before = progress
            else:
                model = model_of(restored)
                named = replace(progress, owner=settings.owner)
                return Export(encode(model.state, model.next, extra_of(model)), named)


def take_in(
    transport: Transport,
    settings: StreamSettings,
    partition: Partition,
    export: Export,
    to_offset: int | None,
) -> Taken:
    """Let the partition go on from an exported model, and with the sequence of its rankings.

    At the exported offset, chunks that the model lacks are folded in again from the input, which
    has to be the same; at another offset (`to_offset`), their records are not in the model. Raises
    `InvalidParameter` where the input does not have the offset, and `ConfigurationChanged` where
    the model would mean something else.
    """
    snapshot, progress = export.snapshot, export.progress
    model = model_of(decode(snapshot.manifest, snapshot.parts, settings.params))
    behind = progress.chunk - model.state.chunk
    # The model is of this partition now: the random signs of partitions are independent.
    model = replace(model, state=replace(model.state, origin=settings.origin(partition)))
    with _acquired(transport, settings, partition) as acquired:
        if to_offset is None:
            acquired.standing.check(model.next)
            acquired.standing.check(progress.next_offset)
            acquired.install(model, replace(progress, owner=settings.owner))
            return Taken(progress.next_offset, progress.chunk, behind)
        acquired.standing.check(to_offset)
        acquired.install(_at(model, progress.chunk, to_offset))
        return Taken(to_offset, progress.chunk, behind)


@dataclass(frozen=True, slots=True)
class _Acquired:
    """A partition whose transactional id this process owns, and its state as found afterwards."""

    settings: StreamSettings
    outbox: Outbox
    log: StateLog
    found: FoundState
    standing: Standing

    def model(self, progress: Progress) -> Model:
        """The model of the newest snapshot."""
        params = self.settings.params
        restored, _ = _to_the_end(newest_usable(self.log, self.found.keys, progress, params))
        return model_of(restored)

    def install(self, model: Model, published: Progress | None = None) -> None:
        """Put a model in the place of what is there; `published` describes its last ranking.

        Without it nothing is known of a ranking, and the model says where to go on.
        """
        settings, partition, before = self.settings, self.standing.partition, self.found.progress
        number = 0 if before is None else before.snapshots[0].number + 1
        records, _ = snapshot_records(settings, partition, model, number)
        with self.transaction() as outbox:
            place = SnapshotPlace(number, model.state.chunk, outbox.send(records)[0])
            progress = replace(published or unranked(settings, model), snapshots=(place,))
            outbox.send([progress_record(settings, partition, progress)])

    @contextmanager
    def transaction(self) -> Iterator[Outbox]:
        """A transaction, committed at the end; with it a legacy state is migrated."""
        migration = self._migration()  # read before the transaction: its end would be waited for
        self.outbox.begin()
        self.outbox.send(migration)
        yield self.outbox
        self.outbox.commit()

    def _migration(self) -> list[Outgoing]:
        progress, partition = self.found.progress, self.standing.partition
        if progress is None or not self.found.legacy:
            return []
        legacy = _to_the_end(legacy_keys(self.log, partition))
        return migration_records(self.settings, partition, progress, legacy)


@contextmanager
def _acquired(
    transport: Transport, settings: StreamSettings, partition: Partition
) -> Iterator[_Acquired]:
    """Acquire the partition, then read its state; released at the end."""
    outbox = transport.outbox(partition)
    with closing(outbox), closing(transport.state_log(partition)) as log:
        while not outbox.take_over():  # waits a little each time
            pass
        found = _to_the_end(find_acquired(log, transport, partition, settings.owner))
        yield _Acquired(settings, outbox, log, found, _standing(transport, found))


def _standing(transport: Transport, found: FoundState) -> Standing:
    with closing(transport.input_log(found.partition)) as source:
        return Standing(
            found.partition,
            found.progress,
            source.start(),
            source.end(),
            found.others,
            found.legacy_stream,
        )


def _at(model: Model, chunk: int, offset: int) -> Model:
    """The model with the number of the last published chunk, going on at an offset."""
    return replace(model, state=replace(model.state, chunk=chunk), next=offset)


def _to_the_end(steps: Generator[None, None, T]) -> T:
    """Run steps that may have to wait, doing nothing else meanwhile."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
