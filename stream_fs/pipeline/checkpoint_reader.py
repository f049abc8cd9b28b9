"""Reading the committed state of a partition, in short steps.

Records are looked for from the end of the state partition backwards; the progress record names the
positions of the last two snapshots. Generators here yield wherever they would have to wait, so
that the caller can keep its membership of the group alive.
"""

from __future__ import annotations

from collections.abc import Callable, Generator

from stream_fs.checkpoint import (
    Parts,
    Progress,
    Restored,
    SnapshotPlace,
    StateKeys,
    decode_snapshot,
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


def newest_values(
    log: StateLog, wanted: Callable[[bytes], bool], enough: bytes | None
) -> Generator[None, None, dict[bytes, bytes | None]]:
    """The newest committed value of every wanted key; None for one that was deleted.

    Reads from the end backwards, and stops where a value of the key `enough` is found, if one is
    given.
    """
    newest: dict[bytes, bytes | None] = {}
    first, below = log.start(), log.end()
    width = FIRST_WINDOW
    while first < below and (enough is None or newest.get(enough) is None):
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
    return decode_snapshot(manifest, parts, params)


def read_usable_snapshot(
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
    partition = Partition(keys.topic, keys.partition)
    raise CorruptSnapshot(
        f"no snapshot of {partition} can be used ({'; '.join(reasons)}); to begin anew at an "
        f"offset of your choice: `stream-fs checkpoint reset {partition.flags} --to-offset N`"
    )
