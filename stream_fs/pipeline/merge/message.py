"""The merged ranking of a stream, from the models of its partitions.

Pure: the same models and the same previous merged ranking give the same bytes.
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
from stream_fs.wire.rankings.codec import ranking_payload


@dataclass(frozen=True, slots=True, eq=False)
class PublishableMerge:
    """A merged ranking with its progress, and the records to publish: both of them."""

    progress: MergeProgress
    ranking: Ranking
    leading: message.Leading
    overlap: Mapping[str, float]
    as_of: int
    records: tuple[OutgoingRecord, ...]


def list_parts(models: Mapping[Partition, Model]) -> tuple[MergedPart, ...]:
    """The parts that a ranking of these models lists, by topic and number."""
    return tuple(MergedPart(*place, models[place].state.chunk) for place in sorted(models))


def build_merged_ranking(
    settings: StreamSettings,
    home: Partition,
    models: Mapping[Partition, Model],
    before: MergeProgress | None,
    leading_before: message.Leading | None = None,
) -> PublishableMerge:
    """Merge at least one model, rank the result, and encode the message and the progress.

    The progress is kept with the state of the partition `home`. Changes of the selection refer to
    the previous ranking, if it has the same parameters.

    `leading_before` holds the leading features of the previous ranking; None after a restore. The
    progress does not keep the order of features: views for which it matters then have no overlap.
    """
    parts = list_parts(models)
    top = message.published_counts(settings.params, settings.output_top)
    ranking = rank(merge([models[place].state for place in sorted(models)]), top)
    comparable = before is not None and before.fingerprint == settings.params.fingerprint
    previous = before.chosen if before is not None and comparable else None
    content = message.merged_message(
        ranking,
        stream=settings.stream,
        sequence=1 if before is None else before.sequence + 1,
        sources=[message.RankingSource(*part) for part in parts],
        as_of=max(model.as_of for model in models.values()),
        dead_letters=sum(model.dead_letters for model in models.values()),
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
    sent = ranking_payload(content, settings.output_format)
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
    """The overlap of the leading features with those of the previous ranking, if comparable."""
    if previous is None:
        return {}
    if leading_before is None:
        leading_before = message.leading(previous, settings.params, ordered=False)
    return message.leading_overlap(leading, leading_before)
