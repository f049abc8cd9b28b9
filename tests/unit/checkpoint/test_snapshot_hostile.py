"""Any bytes give a state or a typed error, and take memory in proportion to their length."""

from __future__ import annotations

import contextlib
import hashlib
import tracemalloc
from collections.abc import Sequence
from typing import Any

import msgpack
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.checkpoint.keys import Owner
from stream_fs.checkpoint.progress import (
    Progress,
    SnapshotPlace,
    decode_progress,
    encode_progress,
)
from stream_fs.checkpoint.snapshot import decode_snapshot, encode_snapshot
from stream_fs.errors import (
    CheckpointError,
    ConfigurationChanged,
    CorruptProgress,
    CorruptSnapshot,
    UnknownSnapshotVersion,
)
from stream_fs.wire import digest
from tests.support.models import model_params, state_content, trained_state

STATE = trained_state(model_params())
EXTRA = {"chosen": [1, 2]}
SNAPSHOT = encode_snapshot(STATE, 140, EXTRA, part_bytes=6_000)
ARRAYS = b"".join(SNAPSHOT.parts)[: -len(msgpack.packb(EXTRA))]
BODY = msgpack.unpackb(msgpack.unpackb(SNAPSHOT.manifest)["body"])
PROGRESS = encode_progress(
    Progress(
        chunk=4,
        from_offset=10,
        next_offset=20,
        snapshots=(SnapshotPlace(3, 4, 99),),
        digest=digest(b"ranking"),
        fingerprint=STATE.params.fingerprint,
        owner=Owner("s", "g"),
    )
)

plain = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=5)
    | st.binary(max_size=5),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=8,
)


def attempt(manifest: bytes, parts: Sequence[bytes]) -> bool:
    """Whether a snapshot is accepted; any error but a typed one fails the test."""
    try:
        decode_snapshot(manifest, parts, STATE.params)
    except CheckpointError:
        return False
    return True


def sealed(body: Any) -> bytes:
    """A manifest with a valid checksum, which anyone can compute."""
    packed = body if isinstance(body, bytes) else msgpack.packb(body)
    envelope = {"v": 1, "sha256": hashlib.sha256(packed).digest(), "body": packed}
    return bytes(msgpack.packb(envelope))


def sealed_parts(parts: Sequence[bytes], **changes: Any) -> bytes:
    joined = b"".join(parts)
    own = {
        "parts": len(parts),
        "size": len(joined),
        "checksum": hashlib.sha256(joined).digest(),
    }
    return sealed({**BODY, **own, **changes})


def test_sealing_by_hand_gives_the_same_manifest() -> None:
    assert sealed(BODY) == sealed_parts(SNAPSHOT.parts) == SNAPSHOT.manifest


@given(st.binary(max_size=400), st.lists(st.binary(max_size=50), max_size=4))
def test_random_bytes(manifest: bytes, parts: list[bytes]) -> None:
    assert not attempt(manifest, parts)


@given(st.binary(max_size=400))
def test_random_body(body: bytes) -> None:
    assert not attempt(sealed(body), SNAPSHOT.parts)


@given(plain)
def test_any_plain_data_as_manifest(value: Any) -> None:
    assert not attempt(msgpack.packb(value), SNAPSHOT.parts)
    assert not attempt(sealed(msgpack.packb(value)), SNAPSHOT.parts)


@given(st.integers(0, len(SNAPSHOT.manifest) - 1))
def test_truncated_manifest(length: int) -> None:
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(SNAPSHOT.manifest[:length], SNAPSHOT.parts, STATE.params)


@given(st.integers(0, 8 * len(SNAPSHOT.manifest) - 1))
def test_flipped_bit_in_the_manifest(bit: int) -> None:
    damaged = bytearray(SNAPSHOT.manifest)
    damaged[bit // 8] ^= 1 << bit % 8
    with pytest.raises((CorruptSnapshot, UnknownSnapshotVersion)):
        decode_snapshot(bytes(damaged), SNAPSHOT.parts, STATE.params)


@given(st.data())
def test_flipped_bit_in_a_part(data: st.DataObject) -> None:
    number = data.draw(st.integers(0, len(SNAPSHOT.parts) - 1))
    parts = [bytearray(part) for part in SNAPSHOT.parts]
    bit = data.draw(st.integers(0, 8 * len(parts[number]) - 1))
    parts[number][bit // 8] ^= 1 << bit % 8
    with pytest.raises(CorruptSnapshot, match="checksum"):
        decode_snapshot(SNAPSHOT.manifest, [bytes(part) for part in parts], STATE.params)


@given(st.sampled_from(sorted(BODY)), plain)
def test_any_field_replaced_under_a_valid_checksum(name: str, value: Any) -> None:
    attempt(sealed({**BODY, name: value}), SNAPSHOT.parts)
    assert not attempt(sealed({key: BODY[key] for key in BODY if key != name}), SNAPSHOT.parts)


@given(st.sampled_from(sorted(BODY["params"])), plain)
def test_any_parameter_replaced_under_a_valid_checksum(name: str, value: Any) -> None:
    attempt(sealed({**BODY, "params": {**BODY["params"], name: value}}), SNAPSHOT.parts)


@given(st.integers(0, len(BODY["arrays"]) - 1), st.integers(0, 3), plain)
def test_any_item_of_the_array_table_replaced(row: int, column: int, value: Any) -> None:
    table = [list(entry) for entry in BODY["arrays"]]
    table[row][column] = value
    attempt(sealed({**BODY, "arrays": table}), SNAPSHOT.parts)


@given(st.binary(max_size=60))
def test_any_bytes_as_extra(extra: bytes) -> None:
    attempt(sealed_parts([ARRAYS, extra]), [ARRAYS, extra])


def test_parts_divided_in_another_way_are_the_same_snapshot() -> None:
    joined = b"".join(SNAPSHOT.parts)
    parts = [b"", joined[:1], b"", joined[1:-1], joined[-1:], b""]
    restored = decode_snapshot(sealed_parts(parts), parts, STATE.params)
    assert state_content(restored.state) == state_content(STATE)


@pytest.mark.parametrize(
    "shape", [[0], [-1], [2**62, 2**62], [12, 1, 1], [True], [12.0], "12", [[12]]]
)
def test_impossible_shapes(shape: Any) -> None:
    table = [["alpha", "<f8", shape, 0]]
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(sealed({**BODY, "arrays": table}), SNAPSHOT.parts, STATE.params)


@pytest.mark.parametrize("dtype", ["<f4", ">f8", "|O", "<i8", 8])
def test_other_types_of_arrays(dtype: Any) -> None:
    table = [[name, dtype, shape, offset] for name, _, shape, offset in BODY["arrays"]]
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(sealed({**BODY, "arrays": table}), SNAPSHOT.parts, STATE.params)


def test_overlapping_arrays_are_rejected() -> None:
    table = [[name, dtype, shape, 0] for name, dtype, shape, _ in BODY["arrays"]]
    with pytest.raises(CorruptSnapshot, match="follow"):
        decode_snapshot(sealed({**BODY, "arrays": table}), SNAPSHOT.parts, STATE.params)


def test_unknown_arrays_are_rejected() -> None:
    table = [[f"{name}?", *entry] for name, *entry in BODY["arrays"]]
    with pytest.raises(CorruptSnapshot):
        decode_snapshot(sealed({**BODY, "arrays": table}), SNAPSHOT.parts, STATE.params)


def test_a_huge_dimension_is_reported_without_allocation() -> None:
    views = [{**view, "dimension": 2**62} for view in BODY["params"]["views"]]
    manifest = sealed({**BODY, "params": {**BODY["params"], "views": views}})
    with pytest.raises(ConfigurationChanged, match=str(2**62)):
        decode_snapshot(manifest, SNAPSHOT.parts, STATE.params)


BOMBS = {
    "lists in lists": b"\xdd\x00\x10\x00\x00" * 400,
    "lists in lists, each as long as the bytes": b"\xdc\x27\x10" * 500 + bytes(10_000),
    "lists in mappings": b"\xdf\x00\x10\x00\x00\xa1a" * 400,
    "a long list": b"\xdd\xff\xff\xff\xff" + bytes(2_000),
    "a long mapping": b"\xdf\xff\xff\xff\xff\xa1a" + bytes(2_000),
    "a long string": b"\xdb\xff\xff\xff\xff" + bytes(2_000),
    "a long binary": b"\xc6\xff\xff\xff\xff" + bytes(2_000),
    "deep lists": b"\x91" * 100_000 + b"\x00",
    "an extension": b"\xc9\xff\xff\xff\xff\x01" + bytes(2_000),
    "a timestamp": b"\xd6\xff\x00\x00\x00\x00",
    "a number as key": b"\x81\x01\x01",
    "a list as key": b"\x81\x90\x01",
    "the same key twice": b"\x82\xa1a\x01\xa1a\x02",
    "not UTF-8": b"\xa1\xff",
    "the code that is never used": b"\xc1",
    "nothing": b"",
}


@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_announced_sizes_are_not_allocated(bomb: bytes) -> None:
    as_extra = sealed_parts([ARRAYS, bomb])
    for manifest, parts in ((bomb, []), (sealed(bomb), []), (as_extra, [ARRAYS, bomb])):
        tracemalloc.start()
        with pytest.raises(CorruptSnapshot):
            decode_snapshot(manifest, parts, STATE.params)
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 4_000_000
    with pytest.raises(CorruptProgress):
        decode_progress(bomb)


@given(st.binary(max_size=300))
def test_random_bytes_as_progress(data: bytes) -> None:
    with pytest.raises(CheckpointError):
        decode_progress(data)


@given(st.integers(0, len(PROGRESS) - 1))
def test_truncated_progress(length: int) -> None:
    with pytest.raises(CorruptProgress):
        decode_progress(PROGRESS[:length])


@given(st.integers(0, 8 * len(PROGRESS) - 1))
def test_flipped_bit_in_progress(bit: int) -> None:
    damaged = bytearray(PROGRESS)
    damaged[bit // 8] ^= 1 << bit % 8
    with contextlib.suppress(CheckpointError):
        assert encode_progress(decode_progress(bytes(damaged))) != PROGRESS


@given(st.sampled_from(sorted(msgpack.unpackb(PROGRESS))), plain)
def test_any_field_of_progress_replaced(name: str, value: Any) -> None:
    record = {**msgpack.unpackb(PROGRESS), name: value}
    with contextlib.suppress(CheckpointError):
        decode_progress(msgpack.packb(record))
