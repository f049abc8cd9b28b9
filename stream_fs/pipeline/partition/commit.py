"""The commit of updated chunks: one transaction with their rankings and the progress."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import NamedTuple

from stream_fs.checkpoint import Progress, SnapshotPlace
from stream_fs.errors import ForeignState, TransportError
from stream_fs.pipeline import events
from stream_fs.pipeline.legacy_state import marker
from stream_fs.pipeline.model import (
    Model,
    UpdatedChunk,
    progress_record,
    snapshot_records,
    unranked_progress,
)
from stream_fs.pipeline.partition.state import (
    Base,
    Committed,
    PartitionContext,
    SnapshotMark,
    Unstarted,
)
from stream_fs.pipeline.ports import OutgoingRecord, Partition, Publisher
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.pipeline.state_owner import locate
from stream_fs.pipeline.transaction import Steps, retrying
from stream_fs.records import Payload
from stream_fs.selector import Ranking, rank
from stream_fs.selector.imputation import Imputation
from stream_fs.wire.rankings import message
from stream_fs.wire.rankings.codec import digest, ranking_payload


class InFlightBatch:
    """Updated chunks whose commit is in progress, and how far it is."""

    def __init__(self, chunks: Sequence[UpdatedChunk], *, start_recorded: bool) -> None:
        self.chunks = tuple(chunks)
        self.start_recorded = start_recorded
        """Whether the partition has a progress record."""
        self.ranked_at = math.inf
        """When all chunks were ranked; infinite until then."""


@dataclass(frozen=True, slots=True, eq=False)
class PublishableChunk:
    """A chunk with its ranking, and the records to publish: the ranking and the dead letters."""

    model: Model
    ranking: Ranking
    records: tuple[OutgoingRecord, ...]
    from_offset: int
    digest: str
    dead_letters: Mapping[str, int]
    """By reason."""
    overlap: Mapping[str, float]
    missing: Mapping[str, float]
    imputed: Mapping[str, Imputation]


class RankedChunk(NamedTuple):
    """A chunk to publish, and the seconds that its ranking took."""

    content: PublishableChunk
    seconds: float


class RankedBatch(NamedTuple):
    """The chunks of a batch up to the first whose ranking failed, and that error, if any."""

    chunks: Sequence[RankedChunk]
    error: Exception | None

    @property
    def last(self) -> PublishableChunk:
        """The chunk whose model the batch leaves."""
        return self.chunks[-1].content


class SentBatch(NamedTuple):
    """The progress that a transaction commits, and the bytes of its snapshot (0 without one)."""

    progress: Progress
    snapshot_bytes: int


def commit_batch(batch: InFlightBatch, base: Base, context: PartitionContext) -> Steps[Committed]:
    """Commit updated chunks in one transaction, and return what is committed then.

    0. Loop: record the start of a partition that has no progress record.
    1. Executor: rank the chunks, oldest first and only once.
    2. Executor: begin the transaction. Hook `begun`.
    3. Executor: send a snapshot of the last chunk, if one is due. Hook `snapshot sent`.
    4. Executor: send all rankings and dead letters in order, and one progress record; wait for
       their acknowledgements. Hook `records sent`.
    5. Executor: commit. Hook `committed`, in the loop.
    6. Loop: observe every chunk.
    7. Loop: commit the group's offset, asynchronously, for lag tools only. Hook `advised`.

    After a retriable or abortable error 2 to 5 are repeated with the same bytes; where the outcome
    of the commit is open, 5 alone. A chunk that cannot be ranked ends the batch before it; its
    error is raised in the end.
    """
    # 0. Record the start.
    if isinstance(base, Unstarted):
        base = yield from record_start(base, context)
        batch.start_recorded = True
    before = base
    ranked, sent = yield from context.transactions.prepare_and_commit(
        # 1. Rank.
        prepare=lambda: rank_batch(batch, before.model, context),
        # 2. Begin, 3. send the snapshot, 4. send the records, 5. commit.
        send=lambda ranked: send_batch(ranked, before, context),
    )
    context.runtime.crash_hook("committed")
    # 6. Observe.
    seconds = context.transactions.committed_at - batch.ranked_at
    for chunk in ranked.chunks:
        context.runtime.observe(_chunk_committed(chunk, ranked, sent, seconds, context.partition))
    # 7. Commit the group's offset.
    context.input.commit_group_offset({context.partition: sent.progress.next_offset})
    context.runtime.crash_hook("advised")
    if ranked.error is not None:
        raise ranked.error
    return Committed(ranked.last.model, sent.progress)


def rank_batch(batch: InFlightBatch, model: Model, context: PartitionContext) -> RankedBatch:
    """Rank the chunks of a batch; `model` is the one before the first.

    Raises the error of the first chunk; that of a later one is part of the result.
    """
    clock = context.runtime.clock
    ranked: list[RankedChunk] = []
    failure: Exception | None = None
    for chunk in batch.chunks:
        began = clock()
        try:
            content = build_messages(context.settings, context.partition, model, chunk)
        except Exception as error:
            if not ranked:
                raise
            failure = error
            break
        ranked.append(RankedChunk(content, clock() - began))
        model = content.model
    batch.ranked_at = clock()
    return RankedBatch(ranked, failure)


def send_batch(ranked: RankedBatch, base: Committed, context: PartitionContext) -> SentBatch:
    """Send a ranked batch within the open transaction; steps 3 and 4 of `commit_batch`."""
    publisher, crash_hook = context.publisher, context.runtime.crash_hook
    crash_hook("begun")
    last = ranked.last
    # 3. Send the snapshot.
    mark, every = SnapshotMark.after(last.model), context.settings.checkpoint_every
    places, size = base.progress.snapshots, 0
    if snapshot_due(mark, base.snapshot, every):
        places, size = _send_snapshot(context, publisher, last.model, places)
        crash_hook("snapshot sent")
    # 4. Send the records.
    progress = Progress(
        chunk=last.model.state.chunk,
        from_offset=last.from_offset,
        next_offset=last.model.next_offset,
        snapshots=places,
        digest=last.digest,
        fingerprint=context.settings.params.fingerprint,
        owner=context.settings.owner,
    )
    records = [record for chunk in ranked.chunks for record in chunk.content.records]
    publisher.send([*records, progress_record(context.settings, context.partition, progress)])
    crash_hook("records sent")
    return SentBatch(progress, size)


def snapshot_due(chunk: SnapshotMark, newest: SnapshotMark, every: int) -> bool:
    """Whether a chunk has a snapshot, if it is the last of its transaction.

    That is the first chunk, the one `every` chunks behind the newest snapshot, and the first one of
    another policy, since a replay forms chunks by the policy of its snapshot.
    """
    if not newest.chunk or chunk.policy != newest.policy:
        return True
    return chunk.chunk - newest.chunk >= every


def build_messages(
    settings: StreamSettings, partition: Partition, before: Model, chunk: UpdatedChunk
) -> PublishableChunk:
    """Rank a chunk, and encode its ranking and dead letters; `before` is the model before it.

    Pure: the same model and chunk give the same bytes.
    """
    top = message.published_counts(settings.params, settings.output_top)
    ranking = rank(chunk.state, top)
    content = message.ranking_message(
        ranking,
        chunk.report,
        stream=settings.stream,
        topic=partition.topic,
        partition=partition.number,
        offsets=(chunk.from_offset, chunk.next_offset),
        as_of=chunk.as_of,
        dead_letters=len(chunk.dead_letters),
        counts=top,
        previous=before.chosen,
    )
    published = ranking_payload(content, settings.output_format)
    chosen = content.chosen
    letters = [_outgoing(settings.dead_letter_topic, one.payload) for one in chunk.dead_letters]
    return PublishableChunk(
        model=Model(
            chunk.state,
            chunk.next_offset,
            chosen,
            chunk.chunk_policy,
            chunk.as_of,
            before.dead_letters + len(letters),
        ),
        ranking=ranking,
        records=(_outgoing(settings.rankings_topic, published), *letters),
        from_offset=chunk.from_offset,
        digest=digest(published.value or b""),
        dead_letters=Counter(letter.bad.reason for letter in chunk.dead_letters),
        overlap=_overlap(settings, chosen, before.chosen),
        missing=chunk.report.missing,
        imputed=chunk.report.imputed,
    )


def record_start(base: Unstarted, context: PartitionContext) -> Steps[Committed]:
    """Commit a progress record before the first chunk: the owner and the first offset.

    The owner, because another stream with the same name or group may start at the same time; the
    offset, because a partition that starts at its end must not start at a later one after a crash.
    `checkpoint reset --to-offset` leaves the same records.

    Raises `ForeignState`, and withdraws the record, if such a stream has started. The record comes
    first: of two streams that start at the same time, at least one finds the other.
    """
    progress = yield from context.transactions.run_until_committed(
        lambda: _send_start(base, context)
    )
    yield from retrying(lambda: _check_other_owners(context), context.runtime.clock)
    return Committed(base.model, progress)


def send_model(
    context: PartitionContext, publisher: Publisher, model: Model, progress: Progress
) -> SentBatch:
    """Send an unscheduled snapshot, and the progress that names it."""
    places, size = _send_snapshot(context, publisher, model, progress.snapshots)
    newer = replace(progress, snapshots=places)
    publisher.send([progress_record(context.settings, context.partition, newer)])
    return SentBatch(newer, size)


def commit_snapshot(base: Committed, deadline: float, context: PartitionContext) -> None:
    """Commit an unscheduled snapshot, so that the next owner has nothing to replay.

    One attempt: without it the next owner replays a few chunks, and nothing is lost.
    """
    observe, clock = context.runtime.observe, context.runtime.clock
    try:
        sent = context.transactions.try_once(
            lambda: send_model(context, context.publisher, base.model, base.progress),
            deadline - clock(),
        )
    except (TransportError, TimeoutError) as error:
        observe(events.TransactionFailed(context.partition, "given_up", str(error)))
        return
    chunk = base.model.state.chunk
    observe(events.SnapshotCommitted(context.partition, chunk, sent.snapshot_bytes))


def _send_start(base: Unstarted, context: PartitionContext) -> Progress:
    settings, publisher = context.settings, context.publisher
    if not base.marked:
        publisher.send([marker(settings, context.partition)])
    return send_model(
        context, publisher, base.model, unranked_progress(settings, base.model)
    ).progress


def _check_other_owners(context: PartitionContext) -> Steps[None]:
    partition, transport = context.partition, context.transport
    try:
        with closing(transport.state_log(partition)) as log:
            owner = context.settings.owner
            found = yield from locate(log, partition, owner, transport.group_offset)
            found.check_others()
    except ForeignState:
        withdrawal = [progress_record(context.settings, partition, None)]
        yield from context.transactions.run_until_committed(
            lambda: context.publisher.send(withdrawal)
        )
        raise


def _send_snapshot(
    context: PartitionContext,
    publisher: Publisher,
    model: Model,
    earlier: tuple[SnapshotPlace, ...],
) -> tuple[tuple[SnapshotPlace, ...], int]:
    """Send a snapshot; the places of it and of the one before, and its size in bytes."""
    number = earlier[0].number + 1 if earlier else 0
    records, size = snapshot_records(context.settings, context.partition, model, number)
    offset = publisher.send(records)[0]
    return (SnapshotPlace(number, model.state.chunk, offset), *earlier[:1]), size


def _chunk_committed(
    chunk: RankedChunk, batch: RankedBatch, sent: SentBatch, seconds: float, partition: Partition
) -> events.ChunkCommitted:
    content, is_last = chunk.content, chunk.content is batch.last
    return events.ChunkCommitted(
        partition,
        ranking=content.ranking,
        overlap=content.overlap,
        missing=content.missing,
        imputed=content.imputed,
        start=content.from_offset,
        next_offset=content.model.next_offset,
        dead_letters=content.dead_letters,
        snapshot_bytes=sent.snapshot_bytes if is_last else 0,
        seconds=seconds if is_last else None,
        ranking_seconds=chunk.seconds,
    )


def _overlap(
    settings: StreamSettings, chosen: message.Chosen, before: message.Chosen | None
) -> dict[str, float]:
    """The overlap of the leading features with those of the ranking before, if there is one."""
    now = message.leading(chosen, settings.params)
    earlier = None if before is None else message.leading(before, settings.params)
    return message.leading_overlap(now, earlier)


def _outgoing(topic: str, payload: Payload) -> OutgoingRecord:
    return OutgoingRecord(topic, payload.key, payload.value, payload.headers)
