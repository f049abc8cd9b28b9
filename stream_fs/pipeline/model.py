"""What one chunk comes to: the new model, and everything that has to be published for it.

Pure: the same model and chunk give the same bytes. Only the snapshot's position, which the broker
decides, enters the progress record later.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

from stream_fs.checkpoint import (
    Progress,
    Restored,
    encode,
    encode_progress,
)
from stream_fs.checkpoint.fields import Plain
from stream_fs.checkpoint.keys import slot
from stream_fs.errors import CorruptSnapshot
from stream_fs.pipeline.chunker import ReadyChunk
from stream_fs.pipeline.ports import OutgoingRecord, Partition
from stream_fs.pipeline.settings import ChunkPolicy, StreamSettings
from stream_fs.records import Payload
from stream_fs.selector import Ranking, Report, State, rank, update
from stream_fs.selector.imputation import Imputation
from stream_fs.wire.dead_letters import DeadLetter
from stream_fs.wire.rankings import message
from stream_fs.wire.rankings.codec import digest, publish


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """All that continues from chunk to chunk.

    `next` is the offset behind the last folded record, `chosen` the features of the last ranking
    (None before the first), `cut` how the stream was cut into the chunks so far. `as_of` is the
    largest timestamp of the last chunk, `letters` counts the dead letters of all chunks.
    """

    state: State
    next: int
    chosen: Mapping[str, tuple[int, ...]] | None
    cut: ChunkPolicy
    as_of: int = 0
    letters: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class UpdatedChunk:
    """What is left of a chunk that was folded into a model; its rows are not.

    Offsets are [start, next), `as_of` its largest timestamp, `cut` how it was cut.
    """

    state: State
    report: Report
    start: int
    next: int
    as_of: int
    letters: tuple[DeadLetter, ...]
    cut: ChunkPolicy


@dataclass(frozen=True, slots=True, eq=False)
class PublishableChunk:
    """A folded chunk, ready to be published."""

    model: Model
    ranking: Ranking
    records: tuple[OutgoingRecord, ...]
    """The ranking and the dead letters."""
    start: int
    digest: str
    letters: Mapping[str, int]
    overlap: Mapping[str, float]
    missing: Mapping[str, float]
    imputed: Mapping[str, Imputation]


def fold(state: State, ready: ReadyChunk, cut: ChunkPolicy) -> UpdatedChunk:
    """Update the model with a chunk."""
    after, report = update(state, ready.chunk)
    return UpdatedChunk(after, report, ready.start, ready.next, ready.as_of, ready.letters, cut)


def announce(
    settings: StreamSettings, partition: Partition, before: Model, folded: UpdatedChunk
) -> PublishableChunk:
    """Rank, and put into bytes what is to be said of a chunk; `before` is the model before it."""
    top = message.published_counts(settings.params, settings.output_top)
    ranking = rank(folded.state, top)
    content = message.ranking_message(
        ranking,
        folded.report,
        stream=settings.stream,
        topic=partition.topic,
        partition=partition.number,
        offsets=(folded.start, folded.next),
        as_of=folded.as_of,
        dead_letters=len(folded.letters),
        counts=top,
        previous=before.chosen,
    )
    published = publish(content, settings.output_format)
    chosen = content.chosen
    letters = [_addressed(settings.dead_letter_topic, letter.payload) for letter in folded.letters]
    return PublishableChunk(
        model=Model(
            folded.state,
            folded.next,
            chosen,
            folded.cut,
            folded.as_of,
            before.letters + len(letters),
        ),
        ranking=ranking,
        records=(_addressed(settings.rankings_topic, published), *letters),
        start=folded.start,
        digest=digest(published.value or b""),
        letters=Counter(letter.bad.reason for letter in folded.letters),
        overlap=_overlap(settings, chosen, before.chosen),
        missing=folded.report.missing,
        imputed=folded.report.imputed,
    )


def _overlap(
    settings: StreamSettings, chosen: message.Chosen, before: message.Chosen | None
) -> dict[str, float]:
    """The overlap of the leading features with those of the ranking before, if there is one."""
    now = message.leading(chosen, settings.params)
    earlier = None if before is None else message.leading(before, settings.params)
    return message.leading_overlap(now, earlier)


def _addressed(topic: str, payload: Payload) -> OutgoingRecord:
    return OutgoingRecord(topic, payload.key, payload.value, payload.headers)


def snapshot_records(
    settings: StreamSettings, partition: Partition, model: Model, number: int
) -> tuple[tuple[OutgoingRecord, ...], int]:
    """The records of a snapshot, manifest first, and their size in bytes."""
    topic = settings.state_topics[partition.topic]
    extra, keys, taken = extra_of(model), settings.keys(partition), slot(number)
    saved = encode(model.state, model.next, extra, part_bytes=settings.part_bytes)
    named = [
        (keys.manifest(taken), saved.manifest),
        *((keys.part(taken, index), part) for index, part in enumerate(saved.parts)),
    ]
    records = tuple(OutgoingRecord(topic, key, value, (), partition.number) for key, value in named)
    return records, sum(len(value) for _, value in named)


def extra_of(model: Model) -> dict[str, Plain]:
    """What a snapshot holds beside the state; `model_of` reads it."""
    return {
        "chosen": {name: list(features) for name, features in (model.chosen or {}).items()},
        "cut": list(model.cut),
        "as_of": model.as_of,
        "letters": model.letters,
    }


def model_of(restored: Restored) -> Model:
    """The model that a snapshot holds. Raises `CorruptSnapshot` where it was not one of ours."""
    try:
        chosen = {
            str(name): tuple(int(feature) for feature in features)
            for name, features in restored.extra["chosen"].items()
        }
        cut = ChunkPolicy(*restored.extra["cut"])
        as_of, letters = int(restored.extra["as_of"]), int(restored.extra["letters"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptSnapshot(f"the snapshot lacks what belongs to it: {error}") from error
    return Model(restored.state, restored.next_offset, chosen or None, cut, as_of, letters)


def unranked(settings: StreamSettings, model: Model) -> Progress:
    """The progress of a model that has no ranking of its own; where its snapshot lies is open."""
    return Progress(
        chunk=model.state.chunk,
        from_offset=model.next,
        next_offset=model.next,
        snapshots=(),
        digest=None,
        fingerprint=model.state.params.fingerprint,
        owner=settings.owner,
    )


def progress_record(
    settings: StreamSettings, partition: Partition, progress: Progress | None
) -> OutgoingRecord:
    """The record that decides where a later owner continues; without a progress it begins anew."""
    return OutgoingRecord(
        settings.state_topics[partition.topic],
        settings.keys(partition).progress,
        None if progress is None else encode_progress(progress),
        (),
        partition.number,
    )
