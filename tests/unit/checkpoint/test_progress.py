from __future__ import annotations

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.checkpoint.keys import Owner
from stream_fs.checkpoint.progress import (
    MergedPart,
    MergeProgress,
    Progress,
    SnapshotPlace,
    decode_progress,
    encode_merge_progress,
    encode_progress,
    largest_merge_progress,
)
from stream_fs.errors import CorruptProgress, UnknownProgressVersion
from stream_fs.selector.parameters import View, params
from stream_fs.wire import digest

counts = st.integers(0, 2**63 - 1)


@st.composite
def records(draw: st.DrawFn) -> Progress:
    begin, end = sorted(draw(st.tuples(counts, counts)))
    return Progress(
        chunk=draw(counts),
        from_offset=begin,
        next_offset=end,
        snapshots=draw(
            st.lists(st.builds(SnapshotPlace, counts, counts, counts), min_size=1, max_size=2).map(
                tuple
            )
        ),
        digest=draw(st.none() | st.binary().map(digest)),
        fingerprint=draw(st.text(max_size=20)),
        owner=draw(st.none() | st.builds(Owner, st.text(max_size=20), st.text(max_size=20))),
    )


EXAMPLE = Progress(
    chunk=4,
    from_offset=10,
    next_offset=20,
    snapshots=(SnapshotPlace(3, 4, 99), SnapshotPlace(2, 3, 66)),
    digest=digest(b"ranking"),
    fingerprint="0123456789abcdef",
    owner=Owner("digits", "digits"),
)


@given(records())
def test_a_record_is_read_back(progress: Progress) -> None:
    data = encode_progress(progress)
    assert decode_progress(data) == progress
    assert encode_progress(decode_progress(data)) == data


def test_a_record_is_small() -> None:
    assert len(encode_progress(EXAMPLE)) < 240


def test_snapshots_alternate_between_the_slots() -> None:
    assert [SnapshotPlace(number, 0, 0).slot for number in range(4)] == [0, 1, 0, 1]


def test_another_version_is_named() -> None:
    with pytest.raises(UnknownProgressVersion, match="version 3"):
        decode_progress(msgpack.packb({"v": 3}))


@pytest.mark.parametrize(
    "change",
    [
        {"next": 9},
        {"chunk": -1},
        {"chunk": True},
        {"chunk": 2**63},
        {"from": 1.0},
        {"digest": "abc"},
        {"digest": digest(b"").upper()},
        {"fingerprint": b""},
        {"stream": None},
        {"group": 3},
        {"snapshots": [{"offset": 1}]},
        {"snapshots": [{"number": -1, "chunk": 1, "offset": 1}]},
        {"snapshots": []},
        {"snapshots": 3},
    ],
    ids=str,
)
def test_a_field_out_of_range_is_rejected(change: dict[str, object]) -> None:
    record = {**msgpack.unpackb(encode_progress(EXAMPLE)), **change}
    with pytest.raises(CorruptProgress):
        decode_progress(msgpack.packb(record))


@given(st.integers(0, 3), st.integers(0, 2**63 - 1), st.sets(st.integers(0, 99)))
def test_largest_merge_progress_is_an_upper_bound(
    partitions: int, count: int, chosen: set[int]
) -> None:
    model, owner = params([View("a", 100), View("b", 7)], 2), Owner("digits", "g/1")
    progress = MergeProgress(
        sequence=count,
        parts=tuple(MergedPart("in", number, count) for number in range(partitions)),
        chosen={"a": tuple(sorted(chosen)), "b": (6,)},
        fingerprint=model.fingerprint,
        owner=owner,
    )
    largest = largest_merge_progress(model, owner, "in", partitions)
    assert len(encode_merge_progress(progress)) <= largest
