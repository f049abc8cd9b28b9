"""Finding the last committed state of a partition, in short steps.

The progress record is looked for from the end of the state partition backwards; it names the
positions of the last two snapshots. Generators here yield wherever they would have to wait, so
that the caller can keep its membership of the group alive.
"""

from __future__ import annotations

from collections.abc import Generator

from stream_fs.checkpoint import (
    Parts,
    Progress,
    Restored,
    SnapshotPlace,
    decode,
    decode_progress,
    manifest_key,
    part_key,
    progress_key,
    read_manifest,
)
from stream_fs.errors import CorruptSnapshot
from stream_fs.pipeline.ports import Partition, StateLog
from stream_fs.selector import Params

FIRST_WINDOW = 2
"""Offsets looked at first, from the end; each further window is eight times as wide.

The progress record is the last of its transaction, and only the marker of the commit comes behind
it; before it there may be a snapshot, large records that need not be read here.
"""


def last_progress(log: StateLog, partition: Partition) -> Generator[None, None, Progress | None]:
    """The newest committed progress record; None where there is none, or it was reset."""
    key = progress_key(partition.topic, partition.number)
    value = yield from last_value(log, key)
    return None if value is None else decode_progress(value)


def last_value(log: StateLog, wanted: bytes) -> Generator[None, None, bytes | None]:
    """The newest committed value of a key; None where there is none, or it was taken back.

    Records with other keys may lie behind it, as many as there are.
    """
    first, below = log.start(), log.end()
    width = FIRST_WINDOW
    while first < below:
        lower = max(first, below - width)
        found: tuple[bytes | None] | None = None
        for stored in log.scan(lower, below):
            if stored is None:
                yield
            elif stored.key == wanted:
                found = (stored.value,)
        if found is not None:
            return found[0]
        below, width = lower, 8 * width
    return None


def read_snapshot(
    log: StateLog, partition: Partition, at: SnapshotPlace, params: Params
) -> Generator[None, None, Restored]:
    """The snapshot that begins at this position. Raises `CorruptSnapshot` where it is not whole."""
    topic, number, slot = partition.topic, partition.number, at.slot
    manifest: bytes | None = None
    parts = Parts()
    whole = 0
    for stored in log.scan(at.offset, log.end()):
        if stored is None:
            yield
            continue
        if manifest is None:
            if stored.key != manifest_key(topic, number, slot) or stored.value is None:
                break
            manifest = stored.value
            whole = read_manifest(manifest).parts
        elif stored.key == part_key(topic, number, slot, len(parts)) and stored.value is not None:
            parts.add(stored.value)
        if len(parts) == whole:
            break
    if manifest is None:
        raise CorruptSnapshot(
            f"there is no snapshot at offset {at.offset} of the state of {partition}"
        )
    return decode(manifest, parts, params)


def newest_usable(
    log: StateLog, partition: Partition, progress: Progress, params: Params
) -> Generator[None, None, tuple[Restored, str | None]]:
    """The newest snapshot that is whole, and why a newer one was passed over.

    Only damage is passed over; another configuration or version is for the operator to decide.
    """
    reasons: list[str] = []
    for place in progress.snapshots:
        try:
            restored = yield from read_snapshot(log, partition, place, params)
        except CorruptSnapshot as error:
            reasons.append(str(error))
        else:
            return restored, "; ".join(reasons) or None
    raise CorruptSnapshot(
        f"no snapshot of {partition} can be used ({'; '.join(reasons)}); to begin anew at an "
        "offset of your choice: `stream-fs checkpoint reset --to-offset`"
    )
