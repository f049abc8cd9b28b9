"""Legacy states, which releases up to 0.1 wrote: their keys name no owner.

A legacy state belongs to the stream that its snapshots name as their origin. Its group is not
recorded: that a group has committed offsets of the partition shows that it was this one. The state
is migrated once, in one transaction: the model is written under the keys of its owner, the legacy
snapshots are deleted, and the legacy progress record becomes a marker, a record of a version that
those releases refuse; without it they would begin anew.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from dataclasses import replace

from stream_fs.checkpoint import (
    LEGACY_MERGE_KEY,
    MergeProgress,
    Progress,
    StateKeys,
    decode_merge_progress,
    decode_progress,
    encode_marker,
    encode_merge_progress,
    marker_owner,
    parse_key,
    read_manifest,
)
from stream_fs.errors import CheckpointError
from stream_fs.pipeline.ports import Outgoing, Partition, StateLog, Transport
from stream_fs.pipeline.restore import newest_values
from stream_fs.pipeline.settings import StreamSettings


def legacy_progress(value: bytes | None) -> Progress | None:
    """The progress of a legacy state; None for a marker. Raises where it cannot be read."""
    return None if value is None or marker_owner(value) else decode_progress(value)


def origin_stream(
    log: StateLog, keys: StateKeys, progress: Progress
) -> Generator[None, None, str | None]:
    """The stream that a state's snapshots name; None where none of them can be read."""
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


def marker(settings: StreamSettings, partition: Partition) -> Outgoing:
    """The record that keeps releases which write legacy states from beginning anew."""
    return Outgoing(
        settings.state_topics[partition.topic],
        StateKeys(None, *partition).progress,
        encode_marker(settings.owner),
        (),
        partition.number,
    )


def migration_records(
    settings: StreamSettings, partition: Partition, legacy: Sequence[bytes]
) -> list[Outgoing]:
    """What replaces the records of a legacy state, with these keys."""
    left = marker(settings, partition)
    deleted = [replace(left, key=key, value=None) for key in legacy if key != left.key]
    return [*deleted, left]


def find_merge(
    transport: Transport, settings: StreamSettings, home: Partition
) -> Generator[None, None, MergeProgress | None]:
    """The progress of the stream's merge; without an owner in it, of a legacy merge it wrote."""
    key = settings.owner.merge_key
    log = transport.state_log(home)
    try:
        values = yield from newest_values(log, (key, LEGACY_MERGE_KEY).__contains__, key)
    finally:
        log.close()
    if key in values:
        value = values[key]
        return None if value is None else decode_merge_progress(value)
    legacy = _legacy_merge(values)
    if legacy is None:
        return None
    for part in legacy.parts:
        if part.topic in settings.state_topics:
            place = Partition(part.topic, part.partition)
            stream = yield from _last_stream(transport, place)
            if stream is not None:
                return legacy if stream == settings.stream else None
    return None


def merge_migration_records(
    settings: StreamSettings, home: Partition, legacy: MergeProgress
) -> list[Outgoing]:
    """The progress of a legacy merge under its owner's key, and a marker under its own."""
    owner, topic = settings.owner, settings.state_topics[home.topic]
    progress = encode_merge_progress(replace(legacy, owner=owner))
    values = {owner.merge_key: progress, LEGACY_MERGE_KEY: encode_marker(owner)}
    return [Outgoing(topic, key, value, (), home.number) for key, value in values.items()]


def _legacy_merge(values: Mapping[bytes, bytes | None]) -> MergeProgress | None:
    value = values.get(LEGACY_MERGE_KEY)
    try:
        return None if value is None or marker_owner(value) else decode_merge_progress(value)
    except CheckpointError:
        return None


def _last_stream(transport: Transport, partition: Partition) -> Generator[None, None, str | None]:
    """The stream that a partition's legacy state belongs to, or that has migrated it."""
    keys = StateKeys(None, *partition)
    log = transport.state_log(partition)
    try:
        values = yield from newest_values(log, keys.progress.__eq__, keys.progress)
        value = values.get(keys.progress)
        try:
            progress = legacy_progress(value)
            owner = None if value is None else marker_owner(value)
        except CheckpointError:
            return None
        if progress is not None:
            return (yield from origin_stream(log, keys, progress))
        return None if owner is None else owner.stream
    finally:
        log.close()
