"""What an operator may do to the state of a partition: look, begin elsewhere, move it.

Every change is a transaction of the partition's own publisher, so it fences whoever is at work on
it: a running service takes the partition over again, and continues from the new state.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from stream_fs.checkpoint import Progress, SnapshotPlace, decode, encode, progress_key
from stream_fs.checkpoint.files import Export
from stream_fs.errors import InvalidParameter
from stream_fs.pipeline.outcome import (
    Model,
    extra_of,
    model_of,
    progress_record,
    snapshot_records,
    unranked,
)
from stream_fs.pipeline.ports import Outbox, Outgoing, Partition, Transport
from stream_fs.pipeline.restore import last_progress, newest_usable
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.selector import initial_state

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Standing:
    """Where a partition stands: its progress (None before the first chunk), and the input's ends.

    The input holds the offsets [first, end).
    """

    partition: Partition
    progress: Progress | None
    first: int
    end: int

    @property
    def next_offset(self) -> int:
        """Where it continues; before the first chunk, where the input begins."""
        return self.first if self.progress is None else self.progress.next_offset

    def check(self, offset: int) -> None:
        """Raise `InvalidParameter` where the input does not have the offset."""
        if not self.first <= offset <= self.end:
            raise InvalidParameter(
                f"offset {offset} is not in {self.partition}, which holds "
                f"[{self.first}, {self.end}); name one that is with --to-offset"
            )


class Taken(NamedTuple):
    """How a partition goes on after an import."""

    offset: int
    chunk: int
    """The last chunk that was published."""
    behind: int
    """How many of the last chunks are not in the model."""


def standing(transport: Transport, partition: Partition) -> Standing:
    """Look, and change nothing."""
    state, source = transport.state_log(partition), transport.input_log(partition)
    try:
        progress = _to_the_end(last_progress(state, partition))
        return Standing(partition, progress, source.start(), source.end())
    finally:
        state.close()
        source.close()


def forget(transport: Transport, settings: StreamSettings, partition: Partition) -> None:
    """Let the partition begin anew where a new one begins (`start`), with an empty model."""
    key = progress_key(partition.topic, partition.number)
    erased = Outgoing(settings.state_topics[partition.topic], key, None, (), partition.number)
    with _transaction(transport, partition) as outbox:
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
    now = standing(transport, partition)
    now.check(offset)
    if keep_model:
        progress = _begun(now)
        model = _at(_last_model(transport, settings, now), progress.chunk, offset)
    else:
        state = initial_state(settings.params, settings.origin(partition))
        model = Model(state, offset, None, settings.cut)
    _install(transport, settings, now, model)


def exported(transport: Transport, settings: StreamSettings, partition: Partition) -> Export:
    """The model of a partition and how far its rankings are, which may be some chunks further.

    Raises `InvalidParameter` before the first chunk, and what `newest_usable` does.
    """
    now = standing(transport, partition)
    progress = _begun(now)
    model = _last_model(transport, settings, now)
    return Export(encode(model.state, model.next, extra_of(model)), progress)


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
    now = standing(transport, partition)
    snapshot, progress = export.snapshot, export.progress
    model = model_of(decode(snapshot.manifest, snapshot.parts, settings.params))
    behind = progress.chunk - model.state.chunk
    # The model is of this partition now: the random signs of partitions are independent.
    model = replace(model, state=replace(model.state, origin=settings.origin(partition)))
    if to_offset is None:
        now.check(model.next)
        now.check(progress.next_offset)
        _install(transport, settings, now, model, progress)
        return Taken(progress.next_offset, progress.chunk, behind)
    now.check(to_offset)
    model = _at(model, progress.chunk, to_offset)
    _install(transport, settings, now, model)
    return Taken(to_offset, progress.chunk, behind)


def _begun(now: Standing) -> Progress:
    if now.progress is None:
        raise InvalidParameter(f"{now.partition} has no model yet: its first chunk is not complete")
    return now.progress


def _last_model(transport: Transport, settings: StreamSettings, now: Standing) -> Model:
    """The newest snapshot's model."""
    log = transport.state_log(now.partition)
    try:
        restored, _ = _to_the_end(newest_usable(log, now.partition, _begun(now), settings.params))
    finally:
        log.close()
    return model_of(restored)


def _at(model: Model, chunk: int, offset: int) -> Model:
    """The model with the number of the last published chunk, going on at an offset."""
    return replace(model, state=replace(model.state, chunk=chunk), next=offset)


def _install(
    transport: Transport,
    settings: StreamSettings,
    now: Standing,
    model: Model,
    published: Progress | None = None,
) -> None:
    """Put a model in the place of what stands there; `published` tells of its last ranking.

    Without it nothing is known of a ranking, and the model says where to go on.
    """
    number = 0 if now.progress is None else now.progress.snapshots[0].number + 1
    records, _ = snapshot_records(settings, now.partition, model, number)
    with _transaction(transport, now.partition) as outbox:
        place = SnapshotPlace(number, model.state.chunk, outbox.send(records)[0])
        progress = replace(published or unranked(model), snapshots=(place,))
        outbox.send([progress_record(settings, now.partition, progress)])


@contextmanager
def _transaction(transport: Transport, partition: Partition) -> Iterator[Outbox]:
    """One transaction of a new owner, committed at the end."""
    outbox = transport.outbox(partition)
    try:
        while not outbox.take_over():  # waits a little each time
            pass
        outbox.begin()
        yield outbox
        outbox.commit()
    finally:
        outbox.close()


def _to_the_end(steps: Generator[None, None, T]) -> T:
    """Run steps that may have to wait, doing nothing else meanwhile."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
