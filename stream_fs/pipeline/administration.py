"""What an operator may do to the state of a partition: look at it, and begin elsewhere.

Every change is a transaction of the partition's own publisher, so it fences whoever is at work on
it: a running service takes the partition over again, and continues from the new state.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TypeVar

from stream_fs.checkpoint import Progress, SnapshotPlace
from stream_fs.errors import InvalidParameter
from stream_fs.pipeline.outcome import Model, model_of, progress_record, snapshot_records
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
    key_only = progress_record(settings, partition, _nowhere(settings))
    _publish(transport, partition, [replace(key_only, value=None)])


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
    if not now.first <= offset <= now.end:
        raise InvalidParameter(
            f"offset {offset} is not in {partition}, which holds [{now.first}, {now.end})"
        )
    if keep_model:
        model = _last_model(transport, settings, now)
    else:
        model = Model(
            initial_state(settings.params, settings.origin(partition)), offset, None, settings.cut
        )
    model = replace(model, next=offset)
    outbox = _owner(transport, partition)
    try:
        outbox.begin()
        number = 0 if now.progress is None else now.progress.snapshots[0].number + 1
        records, _ = snapshot_records(settings, partition, model, number)
        place = SnapshotPlace(number, model.state.chunk, outbox.send(records)[0])
        progress = replace(
            _nowhere(settings),
            chunk=model.state.chunk,
            from_offset=offset,
            next_offset=offset,
            snapshots=(place,),
        )
        outbox.send([progress_record(settings, partition, progress)])
        outbox.commit()
    finally:
        outbox.close()


def _last_model(transport: Transport, settings: StreamSettings, now: Standing) -> Model:
    """The newest snapshot's model, with the number of the last published chunk."""
    if now.progress is None:
        raise InvalidParameter(f"{now.partition} has no model that could be kept")
    log = transport.state_log(now.partition)
    try:
        restored, _ = _to_the_end(newest_usable(log, now.partition, now.progress, settings.params))
    finally:
        log.close()
    model = model_of(restored)
    return replace(model, state=replace(model.state, chunk=now.progress.chunk))


def _nowhere(settings: StreamSettings) -> Progress:
    """A progress record that says nothing yet."""
    return Progress(
        chunk=0,
        from_offset=0,
        next_offset=0,
        snapshots=(SnapshotPlace(0, 0, 0),),
        digest=None,
        fingerprint=settings.params.fingerprint,
    )


def _publish(transport: Transport, partition: Partition, records: list[Outgoing]) -> None:
    outbox = _owner(transport, partition)
    try:
        outbox.begin()
        outbox.send(records)
        outbox.commit()
    finally:
        outbox.close()


def _owner(transport: Transport, partition: Partition) -> Outbox:
    outbox = transport.outbox(partition)
    while not outbox.take_over():  # waits a little each time
        pass
    return outbox


def _to_the_end(steps: Generator[None, None, T]) -> T:
    """Run steps that may have to wait, doing nothing else meanwhile."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            result: T = end.value
            return result
