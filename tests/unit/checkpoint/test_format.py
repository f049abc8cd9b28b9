"""The bytes of every format, written by hand: a change of them is a change of the version."""

from __future__ import annotations

import hashlib

import msgpack
import pytest

from stream_fs.checkpoint import (
    MergedPart,
    MergeProgress,
    Owner,
    decode_merge_progress,
    encode_merge_progress,
)
from stream_fs.checkpoint.manifest import ArrayEntry, Manifest, read_manifest, write_manifest
from stream_fs.checkpoint.progress import Progress, SnapshotPlace, decode_progress, encode_progress
from stream_fs.checkpoint.snapshot import encode_snapshot
from stream_fs.selector.state import flatten
from tests.unit.checkpoint.models import declared, trained


def test_manifest() -> None:
    manifest = Manifest(
        fingerprint="00ff",
        params={"views": [{"name": "v"}], "clusters": 2},
        origin="in/3",
        j=1.5,
        total=2,
        chunk=1,
        next_offset=9,
        parts=1,
        size=40,
        checksum=bytes(32),
        arrays=(ArrayEntry("alpha", (1,), 0), ArrayEntry("0.R", (2, 2), 8)),
    )
    body = msgpack.packb(
        {
            "fingerprint": "00ff",
            "params": {"views": [{"name": "v"}], "clusters": 2},
            "origin": "in/3",
            "j": 1.5,
            "total": 2,
            "chunk": 1,
            "next_offset": 9,
            "parts": 1,
            "size": 40,
            "checksum": bytes(32),
            "arrays": [["alpha", "<f8", [1], 0], ["0.R", "<f8", [2, 2], 8]],
        }
    )
    data = msgpack.packb({"v": 1, "sha256": hashlib.sha256(body).digest(), "body": body})
    assert write_manifest(manifest) == data
    assert read_manifest(data) == manifest


def test_parts() -> None:
    state = trained(declared())
    _, arrays = flatten(state)
    raw = b"".join(array.astype("<f8").tobytes() for array in arrays.values())
    (part,) = encode_snapshot(state, 0, {"a": 1}).parts
    assert part == raw + msgpack.packb({"a": 1})


@pytest.mark.parametrize(
    ("owner", "first"),
    [
        (None, {"v": 1}),
        (Owner("digits", "g/1"), {"v": 2, "stream": "digits", "group": "g/1"}),
    ],
)
def test_progress(owner: Owner | None, first: dict[str, object]) -> None:
    progress = Progress(
        chunk=4,
        from_offset=10,
        next_offset=20,
        snapshots=(SnapshotPlace(3, 4, 99),),
        digest="0" * 64,
        fingerprint="00ff",
        owner=owner,
    )
    data = msgpack.packb(
        {
            **first,
            "chunk": 4,
            "from": 10,
            "next": 20,
            "snapshots": [{"number": 3, "chunk": 4, "offset": 99}],
            "digest": "0" * 64,
            "fingerprint": "00ff",
        }
    )
    assert encode_progress(progress) == data
    assert decode_progress(data) == progress


@pytest.mark.parametrize(
    ("owner", "first"),
    [
        (None, {"v": 1}),
        (Owner("digits", "g/1"), {"v": 2, "stream": "digits", "group": "g/1"}),
    ],
)
def test_progress_of_the_merge(owner: Owner | None, first: dict[str, object]) -> None:
    progress = MergeProgress(
        sequence=9,
        parts=(MergedPart("in", 0, 5), MergedPart("in", 3, 2)),
        chosen={"a": (0, 3, 8), "b": ()},
        fingerprint="00ff",
        owner=owner,
    )
    expected = msgpack.packb(
        {
            **first,
            "sequence": 9,
            "parts": [["in", 0, 5], ["in", 3, 2]],
            "chosen": {"a": bytes([0b10010000, 0b10000000]), "b": b""},
            "fingerprint": "00ff",
        }
    )
    assert encode_merge_progress(progress) == expected
    assert decode_merge_progress(expected) == progress
