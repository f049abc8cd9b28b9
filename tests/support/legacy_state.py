"""States as releases up to 0.1 wrote them: their keys name no owner."""

from __future__ import annotations

from dataclasses import replace

from stream_fs.checkpoint import (
    LEGACY_MERGE_KEY,
    MergeProgress,
    SnapshotPlace,
    StateKeys,
    encode_merge_progress,
    encode_progress,
)
from stream_fs.checkpoint.files import Export
from stream_fs.pipeline.ports import Partition
from tests.support.memory_broker import MemoryBroker
from tests.support.simulated_process import STATE


def write_state(made: MemoryBroker, partition: Partition, export: Export) -> None:
    """Write a model: the snapshot, and the progress record that names it."""
    keys, number = StateKeys(None, *partition), partition.number
    (newest, *_) = export.progress.snapshots
    first = made.produce(
        STATE, export.snapshot.manifest, key=keys.manifest(newest.slot), partition=number
    )
    for index, part in enumerate(export.snapshot.parts):
        made.produce(STATE, part, key=keys.part(newest.slot, index), partition=number)
    place = SnapshotPlace(newest.number, newest.chunk, first)
    progress = replace(export.progress, snapshots=(place,), owner=None)
    made.produce(STATE, encode_progress(progress), key=keys.progress, partition=number)


def write_merge(made: MemoryBroker, progress: MergeProgress) -> None:
    """Write the progress of a merge."""
    made.produce(STATE, encode_merge_progress(replace(progress, owner=None)), key=LEGACY_MERGE_KEY)
