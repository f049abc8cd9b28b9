"""The bytes of progress records, written by hand: another format is another version."""

from __future__ import annotations

import msgpack
import pytest

from stream_fs.checkpoint import (
    MergedPart,
    MergeProgress,
    Owner,
    decode_merge_progress,
    encode_merge_progress,
)
from stream_fs.checkpoint.progress import Progress, SnapshotPlace, decode_progress, encode_progress


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
