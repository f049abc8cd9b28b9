"""Legacy states, which releases up to 0.1 wrote: their keys name no owner.

A legacy state belongs to the stream that its snapshots name as their origin. Its group is not
recorded; a group that has committed offsets of the partition is taken for it. The state is migrated
once, in one transaction: the model is written under the keys of its owner, the legacy snapshots are
deleted, and the legacy progress record becomes a marker, a record of a version that those releases
refuse; without it they would start anew.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from dataclasses import replace

from stream_fs.checkpoint import (
    LEGACY_MERGE_KEY,
    MergeProgress,
    Progress,
    StateKeys,
    decode_progress,
    encode_marker,
    encode_merge_progress,
    marker_owner,
    parse_key,
    read_manifest,
)
from stream_fs.errors import CheckpointError
from stream_fs.pipeline.ports import OutgoingRecord, Partition, StateLog
from stream_fs.pipeline.settings import StreamSettings


def legacy_progress(value: bytes | None) -> Progress | None:
    """The progress of a legacy state; None for a marker. Raises if it cannot be read."""
    return None if value is None or marker_owner(value) else decode_progress(value)


def origin_stream(
    log: StateLog, keys: StateKeys, progress: Progress
) -> Generator[None, None, str | None]:
    """The stream that the snapshots of a state name; None if none of them can be read."""
    for place in progress.snapshots:
        for stored in log.scan(place.offset, place.offset + 1):
            if stored is None:
                yield
            elif stored.key == keys.manifest(place.slot) and stored.value is not None:
                try:
                    return read_manifest(stored.value).origin.rsplit("/", 2)[0]
                except CheckpointError:
                    break
    return None


def legacy_keys(log: StateLog, partition: Partition) -> Generator[None, None, list[bytes]]:
    """Every key of the legacy state of a partition."""
    keys = StateKeys(None, *partition)
    found: dict[bytes, None] = {}
    for stored in log.scan(log.start(), log.end()):
        if stored is None:
            yield
        elif (parsed := parse_key(stored.key)) is not None and parsed.keys == keys:
            found[stored.key] = None
    return list(found)


def marker(settings: StreamSettings, partition: Partition) -> OutgoingRecord:
    """The record that prevents releases with legacy states from starting anew."""
    return OutgoingRecord(
        settings.state_topics[partition.topic],
        StateKeys(None, *partition).progress,
        encode_marker(settings.owner),
        (),
        partition.number,
    )


def migration_records(
    settings: StreamSettings, partition: Partition, legacy: Sequence[bytes]
) -> list[OutgoingRecord]:
    """The records that replace those of a legacy state with these keys."""
    kept = marker(settings, partition)
    deleted = [replace(kept, key=key, value=None) for key in legacy if key != kept.key]
    return [*deleted, kept]


def merge_migration_records(
    settings: StreamSettings, home: Partition, legacy: MergeProgress
) -> list[OutgoingRecord]:
    """The progress of a legacy merge under its owner's key, and a marker under its own."""
    owner, topic = settings.owner, settings.state_topics[home.topic]
    progress = encode_merge_progress(replace(legacy, owner=owner))
    values = {owner.merge_key: progress, LEGACY_MERGE_KEY: encode_marker(owner)}
    return [OutgoingRecord(topic, key, value, (), home.number) for key, value in values.items()]
