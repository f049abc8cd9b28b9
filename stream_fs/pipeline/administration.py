"""Operations on the state of a partition: inspect, reset, export and import.

Every change acquires the transactional id of the partition before it reads anything. That fences a
running service, so nothing is committed between the read and the write. The service acquires the
partition again, and continues from the new state.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from stream_fs.checkpoint import Progress, SnapshotPlace, decode_snapshot, encode_snapshot
from stream_fs.checkpoint.files import Export
from stream_fs.errors import (
    CheckpointError,
    ConfigurationChanged,
    CorruptSnapshot,
    InvalidParameter,
)
from stream_fs.pipeline.checkpoint_reader import read_usable_snapshot
from stream_fs.pipeline.legacy_state import legacy_keys, marker, migration_records
from stream_fs.pipeline.model import (
    Model,
    decode_model,
    encode_extra,
    progress_record,
    snapshot_records,
    unranked_progress,
)
from stream_fs.pipeline.ports import OutgoingRecord, Partition, Publisher, StateLog, Transport
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.state_owner import LocatedState, acquire_state, locate
from stream_fs.selector import initial_state

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """The position of a partition: its progress, None without one, and the bounds of its input.

    The input holds the offsets [first, end). `others` names the owners of other states of the
    partition in the same topic; empty if the stream has a state.
    """

    partition: Partition
    progress: Progress | None
    first: int
    end: int
    others: str = ""

    @property
    def next_offset(self) -> int:
        """The offset at which it continues; without a progress, the first of the input."""
        return self.first if self.progress is None else self.progress.next_offset

    def check(self, offset: int) -> None:
        """Raise `InvalidParameter` if the input does not hold the offset."""
        if not self.first <= offset <= self.end:
            raise InvalidParameter(
                f"offset {offset} is not in {self.partition}, which holds "
                f"[{self.first}, {self.end}); name one that is with --to-offset"
            )

    def require_progress(self) -> Progress:
        """The progress; raises `InvalidParameter` if there is none."""
        if self.progress is not None:
            return self.progress
        if not self.others:
            raise InvalidParameter(
                f"{self.partition} has no model yet: its first chunk is not complete"
            )
        raise InvalidParameter(
            f"{self.partition} has no model of this stream; its state topic has one of "
            f"{self.others}, which the configuration with that name and group can export"
        )


class ImportResult(NamedTuple):
    """How a partition continues after an import."""

    offset: int
    chunk: int
    """The last published chunk."""
    behind: int
    """Number of published chunks that the model lacks."""


def read_position(
    transport: Transport, settings: StreamSettings, partition: Partition
) -> PartitionPosition:
    """The position of a partition; nothing is changed."""
    found = _located(transport, settings, partition)
    return _position(transport, found, found.progress)


def state_errors(
    transport: Transport, settings: StreamSettings, partitions: Sequence[Partition]
) -> list[str]:
    """Reasons why the states of partitions prevent this stream from running."""
    errors = []
    for partition in partitions:
        try:
            found = _located(transport, settings, partition)
            found.check()
            _ = found.progress  # raises if it cannot be read
        except CheckpointError as error:
            errors.append(str(error))
    return errors


def reset(transport: Transport, settings: StreamSettings, partition: Partition) -> str | None:
    """Delete the state: the partition starts like a new one (`start`), with an empty model.

    The progress record need not be readable. Without a state nothing is changed, and the owners of
    other states are returned as text.
    """
    with _acquired(transport, settings, partition) as acquired:
        if acquired.found.reset:
            return None
        if acquired.found.value is None:
            acquired.found.check()
            if acquired.found.legacy is None:
                return acquired.found.others_text or None
        with acquired.transaction() as publisher:
            publisher.send([progress_record(settings, partition, None)])
    return None


def reset_to_offset(
    transport: Transport,
    settings: StreamSettings,
    partition: Partition,
    offset: int,
    *,
    keep_model: bool,
) -> None:
    """Let the partition continue at another offset of its input.

    With `keep_model` the model and the sequence of the rankings continue, and the model lacks the
    records in between. Otherwise the model is empty, and the sequence starts with 1. Raises
    `InvalidParameter` if the input does not hold the offset, or there is no model to keep.
    """
    with _acquired(transport, settings, partition, claim=keep_model) as acquired:
        if keep_model:
            acquired.found.check()
            progress = acquired.position().require_progress()
            acquired.position().check(offset)
            model = _at(acquired.model(progress), progress.chunk, offset)
        else:
            acquired.found.check_others()
            acquired.bounds().check(offset)
            state = initial_state(settings.params, settings.origin(partition))
            model = Model(state, offset, None, settings.chunk_policy)
        acquired.install(model)


def export_model(transport: Transport, settings: StreamSettings, partition: Partition) -> Export:
    """The newest snapshot of a partition, and its progress, which may be some chunks further.

    Nothing is acquired, and a running service continues. If compaction removes the snapshot
    meanwhile, a newer one is read. Raises `InvalidParameter` before the first chunk, and the errors
    of `LocatedState.check` and `read_usable_snapshot`.
    """
    before: Progress | None = None
    while True:
        found = _located(transport, settings, partition)
        found.check()
        progress = _position(transport, found, found.progress).require_progress()
        try:
            with closing(transport.state_log(partition)) as log:
                restored, _ = _run_to_end(
                    read_usable_snapshot(log, found.keys, progress, settings.params)
                )
        except CorruptSnapshot:
            if progress == before:
                raise
            before = progress
        else:
            model = decode_model(restored)
            named = replace(progress, owner=settings.owner)
            return Export(
                encode_snapshot(model.state, model.next_offset, encode_extra(model)), named
            )


def import_model(
    transport: Transport,
    settings: StreamSettings,
    partition: Partition,
    export: Export,
    to_offset: int | None,
) -> ImportResult:
    """Let the partition continue from an exported model, with the sequence of its rankings.

    At the exported offset, chunks that the model lacks are replayed from the input, which has to be
    the same; at another offset (`to_offset`), the model lacks their records. Raises
    `InvalidParameter` if the input does not hold the offset, and `ConfigurationChanged` if the
    model has other parameters.
    """
    snapshot, progress = export.snapshot, export.progress
    try:
        model = decode_model(decode_snapshot(snapshot.manifest, snapshot.parts, settings.params))
    except ConfigurationChanged as changed:
        raise ConfigurationChanged(changed.differences, imported=True) from None
    behind = progress.chunk - model.state.chunk
    # The random signs of a model depend on its partition.
    model = replace(model, state=replace(model.state, origin=settings.origin(partition)))
    with _acquired(transport, settings, partition) as acquired:
        acquired.found.check()
        bounds = acquired.bounds()
        if to_offset is None:
            bounds.check(model.next_offset)
            bounds.check(progress.next_offset)
            acquired.install(model, replace(progress, owner=settings.owner))
            return ImportResult(progress.next_offset, progress.chunk, behind)
        bounds.check(to_offset)
        acquired.install(_at(model, progress.chunk, to_offset))
        return ImportResult(to_offset, progress.chunk, behind)


@dataclass(frozen=True, slots=True)
class _Acquired:
    """A partition whose transactional id this process owns, and its state, read afterwards.

    `publisher` is that of the owner or, for a legacy state, of the releases that wrote it: neither
    can have committed anything since without fencing it.
    """

    transport: Transport
    settings: StreamSettings
    publisher: Publisher
    log: StateLog
    found: LocatedState

    def position(self) -> PartitionPosition:
        """The position of the partition."""
        return _position(self.transport, self.found, self.found.progress)

    def bounds(self) -> PartitionPosition:
        """The bounds of the input, without reading the progress record."""
        return _position(self.transport, self.found, None)

    def model(self, progress: Progress) -> Model:
        """The model of the newest snapshot."""
        params = self.settings.params
        restored, _ = _run_to_end(read_usable_snapshot(self.log, self.found.keys, progress, params))
        return decode_model(restored)

    def install(self, model: Model, published: Progress | None = None) -> None:
        """Replace the state by a model; `published` is the progress of its last ranking.

        Without it no ranking is recorded, and the model determines where to continue.
        """
        settings, partition = self.settings, self.found.partition
        number = self._next_snapshot()
        records, _ = snapshot_records(settings, partition, model, number)
        with self.transaction() as publisher:
            place = SnapshotPlace(number, model.state.chunk, publisher.send(records)[0])
            progress = replace(published or unranked_progress(settings, model), snapshots=(place,))
            publisher.send([progress_record(settings, partition, progress)])

    @contextmanager
    def transaction(self) -> Iterator[Publisher]:
        """A transaction that also migrates a legacy state; committed at the end."""
        first = self._migration()  # read before the transaction, whose end it would wait for
        self.publisher.begin()
        self.publisher.send(first)
        yield self.publisher
        self.publisher.commit()

    def _next_snapshot(self) -> int:
        try:
            before = self.found.progress
        except CheckpointError:  # it is replaced
            before = None
        return 0 if before is None else before.snapshots[0].number + 1

    def _migration(self) -> list[OutgoingRecord]:
        """Records that migrate a legacy state, or mark that there is none."""
        settings, partition = self.settings, self.found.partition
        if self.found.legacy is not None:
            legacy = _run_to_end(legacy_keys(self.log, partition))
            return migration_records(settings, partition, legacy)
        return [] if self.found.marked else [marker(settings, partition)]


@contextmanager
def _acquired(
    transport: Transport, settings: StreamSettings, partition: Partition, *, claim: bool = False
) -> Iterator[_Acquired]:
    """Acquire the partition, then read its state; release it at the end."""
    publisher = transport.publisher(partition)
    with closing(publisher), closing(transport.state_log(partition)) as log:
        while not publisher.acquire():  # waits a little each time
            pass
        found, legacy_publisher = _run_to_end(
            acquire_state(log, transport, partition, settings.owner, claim=claim)
        )
        if legacy_publisher is None:
            yield _Acquired(transport, settings, publisher, log, found)
            return
        with closing(legacy_publisher):
            yield _Acquired(transport, settings, legacy_publisher, log, found)


def _located(transport: Transport, settings: StreamSettings, partition: Partition) -> LocatedState:
    with closing(transport.state_log(partition)) as log:
        return _run_to_end(locate(log, partition, settings.owner, transport.group_offset))


def _position(
    transport: Transport, found: LocatedState, progress: Progress | None
) -> PartitionPosition:
    with closing(transport.input_log(found.partition)) as source:
        first, end = source.start(), source.end()
    return PartitionPosition(found.partition, progress, first, end, found.others_text)


def _at(model: Model, chunk: int, offset: int) -> Model:
    """The model, to continue at an offset after the last published chunk."""
    return replace(model, state=replace(model.state, chunk=chunk), next_offset=offset)


def _run_to_end(steps: Generator[None, None, T]) -> T:
    """Run steps to their end, and return their result."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
