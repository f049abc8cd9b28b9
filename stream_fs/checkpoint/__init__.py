"""Checkpoints: the bytes from which a task continues as if it had never stopped.

A *snapshot* is the whole model; a small *progress* record follows every chunk. Both are MessagePack
and raw arrays, never pickle. Independent of Kafka; only `files` accesses files.
"""

from stream_fs.checkpoint.compatibility import incompatible_changes
from stream_fs.checkpoint.keys import LEGACY_MERGE_KEY, Key, Owner, StateKeys, parse_key
from stream_fs.checkpoint.manifest import Manifest, read_manifest
from stream_fs.checkpoint.progress import (
    MergedPart,
    MergeProgress,
    Progress,
    SnapshotPlace,
    decode_merge_progress,
    decode_progress,
    encode_marker,
    encode_merge_progress,
    encode_progress,
    largest_merge_progress,
    marker_owner,
)
from stream_fs.checkpoint.snapshot import (
    PART_BYTES,
    Parts,
    Restored,
    Snapshot,
    decode_snapshot,
    encode_snapshot,
    largest_manifest,
    part_bytes,
)

__all__ = [
    "LEGACY_MERGE_KEY",
    "PART_BYTES",
    "Key",
    "Manifest",
    "MergeProgress",
    "MergedPart",
    "Owner",
    "Parts",
    "Progress",
    "Restored",
    "Snapshot",
    "SnapshotPlace",
    "StateKeys",
    "decode_merge_progress",
    "decode_progress",
    "decode_snapshot",
    "encode_marker",
    "encode_merge_progress",
    "encode_progress",
    "encode_snapshot",
    "incompatible_changes",
    "largest_manifest",
    "largest_merge_progress",
    "marker_owner",
    "parse_key",
    "part_bytes",
    "read_manifest",
]
