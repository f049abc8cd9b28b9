"""The model of a partition: how a chunk updates it, and the records that store it.

Pure: the same model and chunk give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stream_fs.checkpoint import (
    Progress,
    Restored,
    encode_progress,
    encode_snapshot,
)
from stream_fs.checkpoint.fields import Plain
from stream_fs.checkpoint.keys import slot
from stream_fs.errors import CorruptSnapshot
from stream_fs.pipeline.chunker import ReadyChunk
from stream_fs.pipeline.ports import OutgoingRecord, Partition
from stream_fs.pipeline.settings import ChunkPolicy, StreamSettings
from stream_fs.selector import Report, State, update
from stream_fs.wire.dead_letters import DeadLetter


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """Everything that continues from one chunk to the next.

    `next_offset` follows the last record in the model. `chosen` holds the features of the last
    ranking (None before the first). `chunk_policy` formed the chunks so far. `as_of` is the largest
    timestamp of the last chunk. `dead_letters` counts those of all chunks.
    """

    state: State
    next_offset: int
    chosen: Mapping[str, tuple[int, ...]] | None
    chunk_policy: ChunkPolicy
    as_of: int = 0
    dead_letters: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class UpdatedChunk:
    """The result of updating a model with a chunk, whose rows are not kept.

    Its offsets are [from_offset, next_offset), `as_of` is its largest timestamp, and `chunk_policy`
    formed it.
    """

    state: State
    report: Report
    from_offset: int
    next_offset: int
    as_of: int
    dead_letters: tuple[DeadLetter, ...]
    chunk_policy: ChunkPolicy


def update_chunk(state: State, ready: ReadyChunk, policy: ChunkPolicy) -> UpdatedChunk:
    """Update a model with a chunk."""
    after, report = update(state, ready.chunk)
    return UpdatedChunk(
        after,
        report,
        ready.from_offset,
        ready.next_offset,
        ready.as_of,
        ready.dead_letters,
        policy,
    )


def snapshot_records(
    settings: StreamSettings, partition: Partition, model: Model, number: int
) -> tuple[tuple[OutgoingRecord, ...], int]:
    """The records of a snapshot, manifest first, and their size in bytes."""
    topic = settings.state_topics[partition.topic]
    extra, keys, used = encode_extra(model), settings.keys(partition), slot(number)
    saved = encode_snapshot(model.state, model.next_offset, extra, part_bytes=settings.part_bytes)
    named = [
        (keys.manifest(used), saved.manifest),
        *((keys.part(used, index), part) for index, part in enumerate(saved.parts)),
    ]
    records = tuple(OutgoingRecord(topic, key, value, (), partition.number) for key, value in named)
    return records, sum(len(value) for _, value in named)


def encode_extra(model: Model) -> dict[str, Plain]:
    """The fields of a snapshot beside the state; `decode_model` reads them."""
    # The keys are part of the snapshot format.
    return {
        "chosen": {name: list(features) for name, features in (model.chosen or {}).items()},
        "cut": list(model.chunk_policy),
        "as_of": model.as_of,
        "letters": model.dead_letters,
    }


def decode_model(restored: Restored) -> Model:
    """The model in a snapshot; raises `CorruptSnapshot` if the fields beside the state are bad."""
    try:
        chosen = {
            str(name): tuple(int(feature) for feature in features)
            for name, features in restored.extra["chosen"].items()
        }
        policy = ChunkPolicy(*restored.extra["cut"])
        as_of, letters = int(restored.extra["as_of"]), int(restored.extra["letters"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptSnapshot(f"the snapshot lacks a field of the model: {error}") from error
    return Model(restored.state, restored.next_offset, chosen or None, policy, as_of, letters)


def unranked_progress(settings: StreamSettings, model: Model) -> Progress:
    """The progress of a model without a ranking of its own; its snapshots are still to be added."""
    return Progress(
        chunk=model.state.chunk,
        from_offset=model.next_offset,
        next_offset=model.next_offset,
        snapshots=(),
        digest=None,
        fingerprint=model.state.params.fingerprint,
        owner=settings.owner,
    )


def progress_record(
    settings: StreamSettings, partition: Partition, progress: Progress | None
) -> OutgoingRecord:
    """The record that says where the next owner continues; without a progress it starts anew."""
    return OutgoingRecord(
        settings.state_topics[partition.topic],
        settings.keys(partition).progress,
        None if progress is None else encode_progress(progress),
        (),
        partition.number,
    )
