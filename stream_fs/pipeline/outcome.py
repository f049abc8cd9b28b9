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
    digest,
    encode,
    encode_progress,
    manifest_key,
    part_key,
    progress_key,
)
from stream_fs.checkpoint.keys import slot
from stream_fs.errors import CorruptSnapshot
from stream_fs.pipeline.chunker import ReadyChunk
from stream_fs.pipeline.ports import Outgoing, Partition
from stream_fs.pipeline.settings import Cut, StreamSettings
from stream_fs.selector import Ranking, Report, State, rank, update
from stream_fs.selector.model import counts
from stream_fs.wire import dead_letters, rankings


@dataclass(frozen=True, slots=True, eq=False)
class Model:
    """All that continues from chunk to chunk.

    `next` is the offset behind the last folded record, `chosen` the top of the last ranking, `cut`
    how the stream was cut into the chunks so far.
    """

    state: State
    next: int
    chosen: Mapping[str, tuple[int, ...]]
    cut: Cut


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """A folded chunk, ready to be published."""

    model: Model
    report: Report
    ranking: Ranking
    records: tuple[Outgoing, ...]
    """The ranking and the dead letters."""
    start: int
    digest: str
    letters: Mapping[str, int]
    overlap: Mapping[str, float]


def fold(
    settings: StreamSettings, partition: Partition, model: Model, ready: ReadyChunk, cut: Cut
) -> Outcome:
    """Update the model with a chunk, rank, and put into bytes what is to be said of it."""
    state, report = update(model.state, ready.chunk)
    top = output_counts(settings, state)
    ranking = rank(state, top)
    chosen = {
        view.name: tuple(int(feature) for feature in view.order[: top[view.name]])
        for view in ranking.views
    }
    message = rankings.encode(
        stream=settings.stream,
        topic=partition.topic,
        partition=partition.number,
        ranking=ranking,
        report=report,
        chosen=chosen,
        previous=model.chosen,
        offsets=(ready.start, ready.next),
        as_of=ready.as_of,
        dead_letters=len(ready.letters),
        format=settings.output_format,
    )
    letters = tuple(
        Outgoing(
            settings.dead_letter_topic,
            letter.message.key,
            letter.message.value,
            dead_letters.headers(letter.message, letter.reason, letter.detail),
        )
        for letter in ready.letters
    )
    published = Outgoing(settings.rankings_topic, message.key, message.value, message.headers)
    return Outcome(
        model=Model(state, ready.next, chosen, cut),
        report=report,
        ranking=ranking,
        records=(published, *letters),
        start=ready.start,
        digest=digest(message.value),
        letters=Counter(letter.reason for letter in ready.letters),
        overlap={name: _overlap(model.chosen.get(name), now) for name, now in chosen.items()},
    )


def output_counts(settings: StreamSettings, state: State) -> dict[str, int]:
    """How many features of each view a ranking lists."""
    return counts(state, 1.0 if settings.output_top is None else settings.output_top)


def snapshot_records(
    settings: StreamSettings, partition: Partition, model: Model, number: int
) -> tuple[tuple[Outgoing, ...], int]:
    """The records of a snapshot, manifest first, and their size in bytes."""
    topic = settings.state_topics[partition.topic]
    extra = {
        "chosen": {name: list(features) for name, features in model.chosen.items()},
        "cut": list(model.cut),
    }
    saved = encode(model.state, model.next, extra)
    taken = slot(number)
    named = [
        (manifest_key(partition.topic, partition.number, taken), saved.manifest),
        *(
            (part_key(partition.topic, partition.number, taken, index), part)
            for index, part in enumerate(saved.parts)
        ),
    ]
    records = tuple(Outgoing(topic, key, value, (), partition.number) for key, value in named)
    return records, sum(len(value) for _, value in named)


def model_of(restored: Restored) -> Model:
    """The model that a snapshot holds. Raises `CorruptSnapshot` where it was not one of ours."""
    try:
        chosen = {
            str(name): tuple(int(feature) for feature in features)
            for name, features in restored.extra["chosen"].items()
        }
        cut = Cut(*restored.extra["cut"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise CorruptSnapshot(f"the snapshot lacks what belongs to it: {error}") from error
    return Model(restored.state, restored.next_offset, chosen, cut)


def progress_record(settings: StreamSettings, partition: Partition, progress: Progress) -> Outgoing:
    """The record that decides where a later owner continues."""
    return Outgoing(
        settings.state_topics[partition.topic],
        progress_key(partition.topic, partition.number),
        encode_progress(progress),
        (),
        partition.number,
    )


def _overlap(before: tuple[int, ...] | None, now: tuple[int, ...]) -> float:
    """Share of the previous choice that is still chosen; 0 where there was none."""
    if not before:
        return 0.0
    return len(set(before) & set(now)) / len(before)
