"""Reading records of each file format, and refusing other files."""

from __future__ import annotations

import io
import tracemalloc
from pathlib import Path
from typing import Any

import msgpack
import numpy as np
import pytest

from stream_fs.errors import BrokenFile, InvalidParameter
from stream_fs.replay import Source, file_format, sources
from stream_fs.wire import DeclaredView, RecordDecoder, RecordFormat, encode_record
from stream_fs.wire.records import msgpack_reader
from stream_fs.wire.records.json_reader import json_lines
from stream_fs.wire.records.msgpack_reader import msgpack_objects

VIEWS = (DeclaredView("a", 3), DeclaredView("b", 2, "float64"))
GOOD = [encode_record({"a": [n, 1, 2], "b": [3, n]}) for n in range(5)]


def source(path: Path, wanted: RecordFormat = "msgpack") -> Source:
    return Source(str(path), file_format(path.name), VIEWS, wanted)


def written(path: Path, content: bytes) -> Path:
    path.write_bytes(content)
    return path


@pytest.mark.parametrize(
    ("name", "given", "expected"),
    [
        ("x.jsonl", None, "jsonl"),
        ("x.ndjson", None, "jsonl"),
        ("x.MSGPACK", None, "msgpack"),
        ("x.mpk", None, "msgpack"),
        ("x.npz", None, "npz"),
        ("x.npz", "jsonl", "jsonl"),
        ("-", "msgpack", "msgpack"),
    ],
)
def test_the_format_is_given_or_known_by_the_suffix(name: str, given: Any, expected: str) -> None:
    assert file_format(name, given) == expected


@pytest.mark.parametrize(
    ("name", "given"), [("x.json", None), ("x", None), ("-", None), ("-", "npz")]
)
def test_an_unknown_format_has_to_be_given(name: str, given: Any) -> None:
    with pytest.raises(InvalidParameter, match=r"--format|name the file"):
        file_format(name, given)


def test_a_missing_file(tmp_path: Path) -> None:
    with pytest.raises(InvalidParameter, match="there is no file"):
        source(tmp_path / "x.jsonl")
    (tmp_path / "y.jsonl").mkdir()
    with pytest.raises(InvalidParameter, match="is a directory"):
        source(tmp_path / "y.jsonl")


# --- JSON lines -----------------------------------------------------------------------------------


def test_lines_without_their_ends_and_without_empty_ones(tmp_path: Path) -> None:
    path = written(tmp_path / "x.jsonl", b'{"v":1}\n\n not json\r\n  \n{"last": true}')
    found = source(path)
    assert list(found) == [b'{"v":1}', b" not json", b'{"last": true}']
    assert found.format == "json"
    assert found.done == found.size == path.stat().st_size
    assert list(found) == [b'{"v":1}', b" not json", b'{"last": true}']  # from the beginning


def test_a_line_that_is_too_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_RECORD_BYTES", 100)
    path = written(tmp_path / "x.jsonl", b"{}\n" + b"x" * 100 + b"\n" + b"y" * 1000)
    with pytest.raises(BrokenFile, match="begins at byte 3 has more than 100 bytes"):
        list(source(path))


# --- MessagePack ----------------------------------------------------------------------------------


@pytest.mark.parametrize("block", [1, 7, 1 << 20])
def test_consecutive_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int) -> None:
    monkeypatch.setattr(msgpack_reader, "FILE_BLOCK_BYTES", block)
    values = [*GOOD, msgpack.packb(17), msgpack.packb("no record"), msgpack.packb({})]
    found = source(written(tmp_path / "x.msgpack", b"".join(values)))
    assert list(found) == values
    assert found.format == "msgpack"
    assert found.done == found.size


def test_an_incomplete_file_is_refused_with_the_position_of_the_record(tmp_path: Path) -> None:
    path = written(tmp_path / "x.msgpack", b"".join(GOOD)[:-1])
    records = iter(source(path))
    assert [next(records) for _ in range(4)] == GOOD[:4]
    with pytest.raises(BrokenFile, match=f"begins at byte {4 * len(GOOD[0])}:"):
        next(records)


@pytest.mark.parametrize("block", [1, 1 << 20])
def test_bytes_that_are_not_messagepack_are_refused_with_their_position(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(msgpack_reader, "FILE_BLOCK_BYTES", block)
    path = written(tmp_path / "x.msgpack", GOOD[0] + GOOD[1] + b"\x81\xc1" + GOOD[2])
    place = 2 * len(GOOD[0])
    records = iter(source(path))
    assert [next(records), next(records)] == GOOD[:2]
    with pytest.raises(BrokenFile, match=f"begins at byte {place} is not MessagePack"):
        next(records)


@pytest.mark.parametrize("content", [b'{"v": 1}\n', b"PK\x03\x04", b"\x93\x01\x02\x03"])
def test_a_file_of_another_kind_is_refused(tmp_path: Path, content: bytes) -> None:
    with pytest.raises(BrokenFile, match="is not a file of records in MessagePack"):
        list(source(written(tmp_path / "x.msgpack", content)))


def test_a_record_with_a_huge_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sources, "MAX_RECORD_BYTES", 5000)
    monkeypatch.setattr(msgpack_reader, "FILE_BLOCK_BYTES", 1000)
    huge = b"\x81\xa1x\xc6\xff\xff\xff\xff" + b"y" * 20_000
    with pytest.raises(BrokenFile, match=f"begins at byte {len(GOOD[0])} has more than 5000"):
        list(source(written(tmp_path / "x.msgpack", GOOD[0] + huge)))


@pytest.mark.parametrize(
    ("split", "record"),
    [
        (json_lines, b"%s\n" % (b"x" * 9999)),
        (msgpack_objects, msgpack.packb({"x": bytes(9999)})),
    ],
    ids=["JSON lines", "MessagePack"],
)
def test_memory_does_not_grow_with_the_file(split: Any, record: bytes) -> None:
    """A file of many blocks."""

    class Endless(io.RawIOBase):
        def __init__(self) -> None:
            self.left = 64 * sources.BLOCK_BYTES // len(record) * len(record)
            self.given = 0

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            count = min(len(buffer), self.left)
            start = self.given % len(record)
            copies = record * (count // len(record) + 2)
            buffer[:count] = copies[start : start + count]
            self.given += count
            self.left -= count
            return count

    file = io.BufferedReader(Endless(), 1 << 16)
    tracemalloc.start()
    try:
        count = sum(1 for _ in split(file, "x", sources.MAX_RECORD_BYTES))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert count == 64 * sources.BLOCK_BYTES // len(record)
    assert peak < 12 * sources.BLOCK_BYTES


# --- arrays ---------------------------------------------------------------------------------------


def arrays() -> dict[str, Any]:
    a = np.arange(12, dtype=np.float64).reshape(4, 3) / 7
    b = np.arange(8, dtype=np.float64).reshape(4, 2) / 3
    a[1] = np.nan
    b[2, 0] = np.nan
    a[3], b[3] = np.nan, np.nan
    return {"a": a, "b": b, "labels": np.array(["x"] * 4)}


@pytest.mark.parametrize("wanted", ["msgpack", "json"])
@pytest.mark.parametrize("names", [("a", "b"), ("view_0", "view_1")])
def test_rows_of_arrays(tmp_path: Path, names: tuple[str, str], wanted: RecordFormat) -> None:
    given = arrays()
    np.savez(
        tmp_path / "x.npz", **{names[0]: given["a"], names[1]: given["b"]}, labels=given["labels"]
    )
    found = source(tmp_path / "x.npz", wanted)
    values = list(found)
    assert found.format == wanted
    assert found.done == found.size
    batch = RecordDecoder(VIEWS, wanted).decode(values)
    assert batch.good.tolist() == [0, 1]
    reasons = [bad.reason for bad in batch.bad]
    assert reasons == ["not_finite" if wanted == "msgpack" else "malformed", "all_missing"]
    assert np.array_equal(batch.views["a"].dense(), given["a"][:1].astype(np.float32))
    assert np.array_equal(batch.views["b"].dense(), given["b"][:2])


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"a": np.ones((2, 3))}, "needs arrays named a, b, or view_0 … view_1"),
        ({"view_0": np.ones((2, 3))}, "it has view_0"),
        ({f"view_{n}": np.ones((2, 3 - n)) for n in range(3)}, "it has view_0, view_1, view_2"),
        ({"a": np.ones((2, 4)), "b": np.ones((2, 2))}, r"a has shape \(2, 4\).* 3 features"),
        ({"a": np.ones(3), "b": np.ones((2, 2))}, r"a has shape \(3,\)"),
        ({"a": np.ones((2, 3)), "b": np.ones((3, 2))}, "different numbers of rows: a 2, b 3"),
        ({"a": np.ones((2, 3)), "b": np.full((2, 2), "x")}, "b is of type <U1, not numbers"),
    ],
)
def test_arrays_that_differ_from_the_views(tmp_path: Path, given: Any, message: str) -> None:
    np.savez(tmp_path / "x.npz", **given)
    with pytest.raises(BrokenFile, match=message):
        list(source(tmp_path / "x.npz"))


def test_a_file_that_is_not_an_archive(tmp_path: Path) -> None:
    with pytest.raises(BrokenFile, match=r"cannot be read as \.npz"):
        list(source(written(tmp_path / "x.npz", b"nothing of the kind")))
    np.save(tmp_path / "one.npy", np.ones(3))
    (tmp_path / "one.npy").rename(tmp_path / "one.npz")
    with pytest.raises(BrokenFile, match="is a single array"):
        list(source(tmp_path / "one.npz"))
    np.savez(tmp_path / "objects.npz", a=np.array([{}], object), b=np.ones((1, 2)))
    with pytest.raises(BrokenFile, match=r"cannot be read as \.npz"):
        list(source(tmp_path / "objects.npz"))
