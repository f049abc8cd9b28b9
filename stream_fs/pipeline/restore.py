"""Finding the last committed state of a partition, in short steps.

The progress record is looked for from the end of the state partition backwards; it names the
positions of the last two snapshots. Generators here yield wherever they would have to wait, so
that the caller can keep its membership of the group alive.

A state belongs to an owner, which its keys name. The keys of a legacy state do not: it belongs to
the stream that its snapshots name as their origin.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Mapping
from dataclasses import dataclass

from stream_fs.checkpoint import (
    LEGACY_MERGE_KEY,
    MergeProgress,
    Owner,
    Parts,
    Progress,
    Restored,
    SnapshotPlace,
    StateKeys,
    decode,
    decode_merge_progress,
    decode_progress,
    parse_key,
    read_manifest,
)
from stream_fs.errors import CheckpointError, CorruptSnapshot, ForeignState
from stream_fs.pipeline.ports import Outbox, Partition, StateLog, Transport
from stream_fs.selector import Params

FIRST_WINDOW = 2
"""Offsets looked at first, from the end; each further window is eight times as wide.

The progress record is the last of its transaction, and only the marker of the commit comes behind
it; before it there may be a snapshot, large records that need not be read here.
"""


@dataclass(frozen=True, slots=True)
class FoundState:
    """The state that an owner has of a partition; `progress` is None where it has none.

    `keys` are those of its records. `others` are the owners of other states of the partition in the
    same topic, and `legacy_stream` is the stream of a legacy one; both only where `progress` is
    None.
    """

    owner: Owner
    keys: StateKeys
    progress: Progress | None
    others: tuple[Owner, ...] = ()
    legacy_stream: str | None = None

    @property
    def partition(self) -> Partition:
        """The input partition."""
        return Partition(self.keys.topic, self.keys.partition)

    @property
    def legacy(self) -> bool:
        """Whether it is a legacy state, which has to be migrated."""
        return self.progress is not None and self.keys.owner is None

    def check_owner(self) -> None:
        """Raise `ForeignState` where the state is that of the same stream, or of the same group."""
        for other in self.others:
            if other.stream == self.owner.stream:
                raise ForeignState(self.partition, self.owner, other, "name")
            if other.group == self.owner.group:
                raise ForeignState(self.partition, self.owner, other, "group")


def find_state(
    log: StateLog, partition: Partition, owner: Owner
) -> Generator[None, None, FoundState]:
    """The newest committed state of an owner, be it a legacy state that it wrote."""
    own, legacy = StateKeys(owner, *partition), StateKeys(None, *partition)
    values = yield from newest_values(log, lambda key: _is_progress(key, partition), own.progress)
    if (value := values.get(own.progress)) is not None:
        return FoundState(owner, own, decode_progress(value))
    stream = None
    if own.progress not in values:  # not even reset
        progress = _unmigrated(values.get(legacy.progress))
        if progress is not None:
            stream = yield from _origin_stream(log, legacy, progress)
            if stream in (owner.stream, None):  # unreadable: the caller finds out what is wrong
                return FoundState(owner, legacy, progress)
    return FoundState(owner, own, None, tuple(_owners(values)), stream)


def find_acquired(
    log: StateLog, transport: Transport, partition: Partition, owner: Owner
) -> Generator[None, None, FoundState]:
    """`find_state`, for the owner of the partition's transactional id.

    Releases that write legacy states have other transactional ids: theirs is fenced, so that the
    state cannot change any more. Raises `ForeignState`.
    """
    found = yield from find_state(log, partition, owner)
    if found.legacy:
        yield from fence(transport.outbox(partition, legacy=True))
        found = yield from find_state(log, partition, owner)
    found.check_owner()
    return found


def fence(outbox: Outbox) -> Generator[None, None, None]:
    """Take ownership away from the present owner, and release it."""
    try:
        while not outbox.take_over():
            yield
    finally:
        outbox.close()


def newest_values(
    log: StateLog, wanted: Callable[[bytes], bool], enough: bytes
) -> Generator[None, None, dict[bytes, bytes | None]]:
    """The newest committed value of every wanted key; None for one that was deleted.

    Reads from the end backwards, and stops where the key `enough` is found.
    """
    newest: dict[bytes, bytes | None] = {}
    first, below = log.start(), log.end()
    width = FIRST_WINDOW
    while first < below and enough not in newest:
        lower = max(first, below - width)
        found: dict[bytes, bytes | None] = {}
        for stored in log.scan(lower, below):
            if stored is None:
                yield
            elif wanted(stored.key):
                found[stored.key] = stored.value
        newest = found | newest
        below, width = lower, 8 * width
    return newest


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


def find_merge(
    transport: Transport, home: Partition, owner: Owner
) -> Generator[None, None, MergeProgress | None]:
    """The progress of an owner's merge; without an owner in it, of a legacy merge that it wrote."""
    log = transport.state_log(home)
    try:
        keys = (owner.merge_key, LEGACY_MERGE_KEY)
        values = yield from newest_values(log, keys.__contains__, owner.merge_key)
    finally:
        log.close()
    if owner.merge_key in values:
        value = values[owner.merge_key]
        return None if value is None else decode_merge_progress(value)
    value = values.get(LEGACY_MERGE_KEY)
    legacy = None if value is None else decode_merge_progress(value)
    if legacy is None or legacy.owner is not None:
        return None
    for part in legacy.parts:
        stream = yield from _last_stream(transport, Partition(part.topic, part.partition))
        if stream is not None:
            return legacy if stream == owner.stream else None
    return None


def _last_stream(transport: Transport, partition: Partition) -> Generator[None, None, str | None]:
    """The stream that a partition's legacy state belongs to, or that has migrated it."""
    keys = StateKeys(None, *partition)
    log = transport.state_log(partition)
    try:
        values = yield from newest_values(log, keys.progress.__eq__, keys.progress)
        value = values.get(keys.progress)
        if value is None:
            return None
        progress = decode_progress(value)
        if progress.owner is not None:
            return progress.owner.stream
        return (yield from _origin_stream(log, keys, progress))
    finally:
        log.close()


def _is_progress(key: bytes, partition: Partition) -> bool:
    parsed = parse_key(key)
    if parsed is None or parsed.holds != "progress":
        return False
    return (parsed.keys.topic, parsed.keys.partition) == partition


def _unmigrated(value: bytes | None) -> Progress | None:
    """The progress of a legacy state; a migration leaves one there that names the owner."""
    progress = None if value is None else decode_progress(value)
    return None if progress is None or progress.owner is not None else progress


def _owners(values: Mapping[bytes, bytes | None]) -> Iterator[Owner]:
    for key, value in values.items():
        parsed = parse_key(key)
        if value is not None and parsed is not None and parsed.keys.owner is not None:
            yield parsed.keys.owner


def _origin_stream(
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


def read_snapshot(
    log: StateLog, keys: StateKeys, at: SnapshotPlace, params: Params
) -> Generator[None, None, Restored]:
    """The snapshot that begins at this position. Raises `CorruptSnapshot` where it is not whole."""
    manifest: bytes | None = None
    parts = Parts()
    whole = 0
    for stored in log.scan(at.offset, log.end()):
        if stored is None:
            yield
            continue
        if manifest is None:
            if stored.key != keys.manifest(at.slot) or stored.value is None:
                break
            manifest = stored.value
            whole = read_manifest(manifest).parts
        elif stored.key == keys.part(at.slot, len(parts)) and stored.value is not None:
            parts.add(stored.value)
        if len(parts) == whole:
            break
    if manifest is None:
        raise CorruptSnapshot(
            f"there is no snapshot at offset {at.offset} of the state of "
            f"{Partition(keys.topic, keys.partition)}"
        )
    return decode(manifest, parts, params)


def newest_usable(
    log: StateLog, keys: StateKeys, progress: Progress, params: Params
) -> Generator[None, None, tuple[Restored, str | None]]:
    """The newest snapshot that is whole, and why a newer one was passed over.

    Only damage is passed over; another configuration or version is for the operator to decide.
    """
    reasons: list[str] = []
    for place in progress.snapshots:
        try:
            restored = yield from read_snapshot(log, keys, place, params)
        except CorruptSnapshot as error:
            reasons.append(str(error))
        else:
            return restored, "; ".join(reasons) or None
    raise CorruptSnapshot(
        f"no snapshot of {Partition(keys.topic, keys.partition)} can be used "
        f"({'; '.join(reasons)}); to begin anew at an offset of your choice: "
        "`stream-fs checkpoint reset --to-offset`"
    )
