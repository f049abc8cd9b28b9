"""The stream's ranking from the models of its partitions.

Pure: the same models, and the same merged ranking before, give the same bytes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stream_fs.checkpoint import MergedPart, MergeProgress, encode_merge_progress
from stream_fs.pipeline.model import Model
from stream_fs.pipeline.ports import OutgoingRecord, Partition
from stream_fs.pipeline.settings import StreamSettings
from stream_fs.selector import Ranking, rank
from stream_fs.selector.merge.combine import merge
from stream_fs.wire.rankings import message
from stream_fs.wire.rankings.codec import publish


@dataclass(frozen=True, slots=True, eq=False)
class PublishableMerge:
    """A merged ranking, ready to be published with the progress that it makes."""

    progress: MergeProgress
    ranking: Ranking
    leading: message.Leading
    overlap: Mapping[str, float]
    as_of: int
    records: tuple[OutgoingRecord, ...]


def parts_of(models: Mapping[Partition, Model]) -> tuple[MergedPart, ...]:
    """What a ranking from these models lists, in its order: that of the names, then of numbers."""
    return tuple(MergedPart(*place, models[place].state.chunk) for place in sorted(models))


def merged(
    settings: StreamSettings,
    home: Partition,
    models: Mapping[Partition, Model],
    before: MergeProgress | None,
    leading_before: message.Leading | None = None,
) -> PublishableMerge:
    """Merge, rank, and put into bytes what is to be said of it; there is at least one model.

    `home` is the partition with whose state the progress is kept. The selection is told against
    the ranking before, as long as the same parameters made it.

    `leading_before` are the leading features of the ranking before, None after a restore. The
    progress does not keep the order of features: views for which it matters then have no overlap.
    """
    parts = parts_of(models)
    top = message.published_counts(settings.params, settings.output_top)
    ranking = rank(merge([models[place].state for place in sorted(models)]), top)
    comparable = before is not None and before.fingerprint == settings.params.fingerprint
    previous = before.chosen if before is not None and comparable else None
    content = message.merged_message(
        ranking,
        stream=settings.stream,
        sequence=1 if before is None else before.sequence + 1,
        sources=[message.Source(*part) for part in parts],
        as_of=max(model.as_of for model in models.values()),
        dead_letters=sum(model.letters for model in models.values()),
        counts=top,
        previous=previous,
    )
    chosen = content.chosen
    leading = message.leading(chosen, settings.params)
    progress = MergeProgress(
        sequence=content.sequence,
        parts=parts,
        chosen=chosen,
        fingerprint=settings.params.fingerprint,
        owner=settings.owner,
    )
    sent = publish(content, settings.output_format)
    return PublishableMerge(
        progress=progress,
        ranking=ranking,
        leading=leading,
        overlap=_overlap(settings, leading, previous, leading_before),
        as_of=content.as_of,
        records=(
            OutgoingRecord(settings.rankings_topic, sent.key, sent.value, sent.headers),
            _progress_record(settings, home, progress),
        ),
    )


def _progress_record(
    settings: StreamSettings, home: Partition, progress: MergeProgress
) -> OutgoingRecord:
    topic, key = settings.state_topics[home.topic], settings.owner.merge_key
    return OutgoingRecord(topic, key, encode_merge_progress(progress), (), home.number)


def _overlap(
    settings: StreamSettings,
    leading: message.Leading,
    previous: message.Chosen | None,
    leading_before: message.Leading | None,
) -> dict[str, float]:
    """The overlap of the leading features with those of the ranking before, if it compares."""
    if previous is None:
        return {}
    if leading_before is None:
        leading_before = message.leading(previous, settings.params, ordered=False)
    return message.leading_overlap(leading, leading_before)
