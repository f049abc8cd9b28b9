"""Reads the committed state of a partition, in short steps.

The progress record is searched from the end of the state partition backwards; it names the
positions of the last two snapshots. The generators yield where they would have to wait, so that the
caller can keep its membership of the group alive.
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
"""Offsets read first, from the end; each further window is eight times as wide.

The progress record is the last of its transaction, and only the commit marker follows it. Before it
there may be the large records of a snapshot, which need not be read here.
"""


def newest_values(
    log: StateLog, wanted: Callable[[bytes], bool], enough: bytes | None
) -> Generator[None, None, dict[bytes, bytes | None]]:
    """The newest committed value of every wanted key; None for a deleted one.

    Reads from the end backwards, as far as a value of the key `enough`, if one is given.
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
    """The snapshot that begins at this position; raises `CorruptSnapshot` if it is not whole."""
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
    """The newest whole snapshot, and why a newer one was not used, if so.

    Only a damaged snapshot is replaced by an older one; another configuration or version is an
    error.
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
        f"no snapshot of {partition} can be used ({'; '.join(reasons)}); to start with an empty "
        f"model at an offset: `stream-fs checkpoint reset {partition.flags} --to-offset N`"
    )
