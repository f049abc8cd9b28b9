"""Finds the state that a stream owns, and acquires it.

The keys of a state name its owner: a stream and its consumer group. Streams may keep their states
in one topic if both names differ: with the same stream name they would publish two sequences of
rankings under it, with the same group they would share its partitions.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass

from stream_fs.checkpoint import (
    LEGACY_MERGE_KEY,
    MergeProgress,
    Owner,
    Progress,
    StateKeys,
    decode_merge_progress,
    decode_progress,
    marker_owner,
    parse_key,
)
from stream_fs.errors import CheckpointError, CorruptProgress, ForeignState
from stream_fs.pipeline.checkpoint_reader import newest_values
from stream_fs.pipeline.legacy_state import legacy_progress, origin_stream
from stream_fs.pipeline.ports import Partition, Publisher, StateLog, Transport
from stream_fs.pipeline.settings import StreamSettings


@dataclass(frozen=True, slots=True)
class LocatedState:
    """An owner's state of a partition, and the owners of other states.

    `value` is the progress record under the owner's keys, `legacy` the progress of a legacy state
    of the owner. `others` own further states of the partition in the same topic, and
    `legacy_stream` wrote a legacy one. The former are not searched if the owner has a chunk, the
    latter only if the owner has no state and has not `reset` one. `ownership_error` is set if the
    owner of a legacy state is undecided.
    """

    partition: Partition
    owner: Owner
    value: bytes | None = None
    legacy: Progress | None = None
    others: tuple[Owner, ...] = ()
    legacy_stream: str | None = None
    ownership_error: CheckpointError | None = None
    reset: bool = False
    marked: bool = True
    """Whether there is a legacy progress record, of any stream, or a marker."""

    @property
    def keys(self) -> StateKeys:
        """The keys of the state's records."""
        migrated = self.value is not None or self.legacy is None
        return StateKeys(self.owner if migrated else None, *self.partition)

    @property
    def progress(self) -> Progress | None:
        """Its progress; raises if the record cannot be read."""
        return self.legacy if self.value is None else decode_progress(self.value)

    @property
    def others_text(self) -> str:
        """The owners of other states, as text; empty if there are none."""
        found = [str(other) for other in self.others]
        if self.legacy_stream is not None:
            found.append(f"stream {self.legacy_stream!r} in a group that was not recorded")
        return ", ".join(found)

    def check_others(self) -> None:
        """Raise `ForeignState` if another state has the same stream or the same group."""
        for other in self.others:
            if other.stream == self.owner.stream:
                raise _shared(self.partition, self.owner, other, "name")
            if other.group == self.owner.group:
                raise _shared(self.partition, self.owner, other, "group")

    def check(self) -> None:
        """Raise `CheckpointError` if the owner may neither continue from a state nor start anew."""
        self.check_others()
        if self.ownership_error is not None:
            raise self.ownership_error


def locate(
    log: StateLog,
    partition: Partition,
    owner: Owner,
    group_offset: Callable[[Partition], int | None],
    *,
    claim: bool = False,
) -> Generator[None, None, LocatedState]:
    """Find the newest committed state of an owner, which may be a legacy one.

    `group_offset` is that of `Transport`, called if there is a legacy state. With `claim` a legacy
    state of the same stream name is the owner's, whatever the group has committed; so is one before
    the first chunk, because until then its group commits nothing.
    """
    own, old = StateKeys(owner, *partition), StateKeys(None, *partition)
    values = yield from newest_values(log, lambda key: _is_progress(key, partition), own.progress)
    if (value := values.get(own.progress)) is not None:
        if not _before_first_chunk(value):
            return LocatedState(partition, owner, value)
        values = yield from newest_values(log, lambda key: _is_progress(key, partition), None)
        return LocatedState(partition, owner, value, others=tuple(_others(values, owner)))
    others, value = tuple(_others(values, owner)), values.get(old.progress)
    if own.progress in values:
        marked = value is not None
        return LocatedState(partition, owner, others=others, reset=True, marked=marked)
    try:
        progress = legacy_progress(value)
    except CheckpointError as problem:
        read = group_offset(partition) is not None
        unreadable = _unreadable(partition, problem) if read else None
        return LocatedState(partition, owner, others=others, ownership_error=unreadable)
    if progress is None:
        return LocatedState(partition, owner, others=others, marked=value is not None)
    stream = yield from origin_stream(log, old, progress)
    offset = group_offset(partition)
    if stream == owner.stream and (claim or progress.chunk == 0):
        return LocatedState(partition, owner, legacy=progress, others=others)
    if offset is not None and stream in (owner.stream, None):
        return LocatedState(partition, owner, legacy=progress, others=others)
    ownership_error = None
    if stream == owner.stream:
        ownership_error = _unknown_group(partition, owner, progress)
    elif offset is not None:
        ownership_error = _unknown_stream(partition, owner, stream, offset)
    return LocatedState(
        partition,
        owner,
        others=others,
        legacy_stream=stream or "unknown",
        ownership_error=ownership_error,
    )


def acquire_state(
    log: StateLog, transport: Transport, partition: Partition, owner: Owner, *, claim: bool = False
) -> Generator[None, None, tuple[LocatedState, Publisher | None]]:
    """Locate the state of a partition, and acquire it from releases with legacy states.

    The transactional id of the partition is acquired already; those releases have ids of their own.
    If the owner has no state, that id is acquired as well, so that nothing more is committed under
    it. For a legacy state its publisher is returned: the migration is sent by it, and fails if an
    older release has acquired the id again meanwhile.
    """
    found = yield from locate(log, partition, owner, transport.group_offset, claim=claim)
    if found.value is not None:
        return found, None
    legacy_publisher = transport.publisher(partition, legacy=True)
    try:
        while not legacy_publisher.acquire():
            yield
        found = yield from locate(log, partition, owner, transport.group_offset, claim=claim)
    except BaseException:
        legacy_publisher.close()
        raise
    if found.legacy is None:
        legacy_publisher.close()
        return found, None
    return found, legacy_publisher


def find_merge_progress(
    transport: Transport, settings: StreamSettings, home: Partition
) -> Generator[None, None, MergeProgress | None]:
    """The progress of the stream's merge; one without an owner is that of a legacy merge.

    A legacy merge belongs to the owner of the legacy states of its partitions.
    """
    key = settings.owner.merge_key
    with closing(transport.state_log(home)) as log:
        values = yield from newest_values(log, (key, LEGACY_MERGE_KEY).__contains__, key)
    if key in values:
        value = values[key]
        return None if value is None else decode_merge_progress(value)
    legacy = _legacy_merge(values)
    wrote = set()
    for part in () if legacy is None else legacy.parts:
        if part.topic in settings.state_topics:
            place = Partition(part.topic, part.partition)
            wrote.add((yield from _wrote_legacy(transport, place, settings.owner)))
    return legacy if wrote - {None} == {True} else None


def _is_progress(key: bytes, partition: Partition) -> bool:
    parsed = parse_key(key)
    if parsed is None or parsed.content != "progress":
        return False
    return (parsed.keys.topic, parsed.keys.partition) == partition


def _before_first_chunk(value: bytes) -> bool:
    try:
        return decode_progress(value).chunk == 0
    except CheckpointError:
        return False


def _others(values: Mapping[bytes, bytes | None], owner: Owner) -> Iterator[Owner]:
    for key, value in values.items():
        parsed = parse_key(key)
        found = None if parsed is None else parsed.keys.owner
        if value is not None and found is not None and found != owner:
            yield found


def _legacy_merge(values: Mapping[bytes, bytes | None]) -> MergeProgress | None:
    value = values.get(LEGACY_MERGE_KEY)
    try:
        return None if value is None or marker_owner(value) else decode_merge_progress(value)
    except CheckpointError:
        return None


def _wrote_legacy(
    transport: Transport, partition: Partition, owner: Owner
) -> Generator[None, None, bool | None]:
    """Whether a partition's legacy state belongs to an owner, or did before its migration.

    None if there is none that can be read.
    """
    key = StateKeys(None, *partition).progress
    with closing(transport.state_log(partition)) as log:
        # Before the marker is read: the state may be migrated in between.
        found = yield from locate(log, partition, owner, transport.group_offset)
        if found.legacy is not None:
            return True
        value = (yield from newest_values(log, key.__eq__, key)).get(key)
    try:
        return None if value is None else marker_owner(value) == owner
    except CheckpointError:
        return None


def _shared(partition: Partition, owner: Owner, other: Owner, what: str) -> ForeignState:
    place = partition.flags
    return ForeignState(
        f"{partition} has no chunk of {owner}, but a state of {other}, which has the same {what}. "
        "Streams side by side need different names (stream.name) and different groups "
        "(kafka.group): set both. If one of them was started by mistake, run "
        f"`stream-fs checkpoint reset {place}` with its configuration. If the stream was renamed, "
        "restore the old name and group, or move every partition: with the configuration of "
        f"{other}, run `stream-fs checkpoint export {place} FILE`, then `stream-fs checkpoint "
        f"reset {place}`; with this one, `stream-fs checkpoint import {place} FILE`"
    )


def _unknown_group(partition: Partition, owner: Owner, legacy: Progress) -> ForeignState:
    place = partition.flags
    return ForeignState(
        f"{partition} has a state of a stream {owner.stream!r}, of a release that did not record "
        f"the group, and group {owner.group!r} has committed no offset of the partition. If "
        "another group wrote it, restore that group (kafka.group). If it was this one, and its "
        "offsets have expired, take the state over with "
        f"`stream-fs checkpoint reset {place} --keep-model --to-offset {legacy.next_offset}`"
    )


def _unknown_stream(
    partition: Partition, owner: Owner, stream: str | None, offset: int
) -> ForeignState:
    place = partition.flags
    return ForeignState(
        f"{partition} has a state of stream {stream!r}, of a release that did not record the "
        f"group, and group {owner.group!r} has committed offset {offset} of the partition. If this "
        f"stream was called {stream!r} before, restore that name (stream.name). If it is another "
        "one, give it a group that has read nothing yet (kafka.group), or begin with "
        f"`stream-fs checkpoint reset {place} --to-offset N`, N being the first offset to read"
    )


def _unreadable(partition: Partition, problem: CheckpointError) -> CorruptProgress:
    place = partition.flags
    return CorruptProgress(
        f"{partition} has a state of a release that did not record the owner, perhaps of this "
        f"stream, whose group has committed an offset of the partition: {problem}. Restore the "
        "state topic from a copy, or begin with an empty model with "
        f"`stream-fs checkpoint reset {place} --to-offset N`, N being the first offset to read"
    )
