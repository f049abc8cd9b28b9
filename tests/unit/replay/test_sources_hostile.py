"""Hostile archives of arrays that were faults once."""

from __future__ import annotations

import io
import tracemalloc
import zipfile
from pathlib import Path

import numpy as np
import pytest

from stream_fs.errors import (
    BrokenFile,
    IncompatibleState,
)
from stream_fs.replay.sources import array_rows
from stream_fs.selector import MultiViewSelector
from stream_fs.wire import DeclaredView

VIEWS = (DeclaredView("a", 3), DeclaredView("b", 4, "float64", "unit"))


def array(header: bytes, data: bytes = b"", version: bytes = b"\x01\x00") -> bytes:
    return b"\x93NUMPY" + version + len(header).to_bytes(2, "little") + header + data


ARRAYS: dict[str, bytes] = {
    "more rows than memory": array(
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (100000000, 3), }\n", bytes(24)
    ),
    "more values than numbers": array(
        b"{'descr': '<f8', 'fortran_order': False, 'shape': (4611686018427387904, 3), }\n"
    ),
    "a nested header": array(b"[" * 2000),
    "a header that ends early": array(b"{'descr': '<f4', 'fortran_order': False, 'shape': (5, 3)"),
    "truth as a length": array(
        b"{'descr': '<M8[s]', 'fortran_order': True, 'shape': (True, 3), }\n", bytes(24)
    ),
    "another version": array(b"{}", version=b"\x09\x00"),
    "no array at all": b"bytes",
    "objects": array(b"{'descr': '|O', 'fortran_order': False, 'shape': (1, 3), }\n", b"cos\n"),
}


@pytest.mark.parametrize("member", ARRAYS.values(), ids=list(ARRAYS))
@pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA])
def test_arrays_that_are_not_what_they_say(tmp_path: Path, member: bytes, method: int) -> None:
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w", method) as archive:
        archive.writestr("a.npy", member)
        archive.writestr("header.npy", member)
    with pytest.raises(BrokenFile):
        list(array_rows(path, VIEWS[:1], "msgpack"))
    with pytest.raises(IncompatibleState):
        MultiViewSelector.load(path)


@pytest.mark.parametrize(("place", "value"), [(8, 0x63), (8, 0x0E), (6, 0x21), (4, 0xFF)])
def test_archives_that_zipfile_does_not_know(tmp_path: Path, place: int, value: int) -> None:
    """Another method of compression, flag or version, in the directory and at the member."""
    buffer = io.BytesIO()
    np.savez_compressed(buffer, a=np.ones((5, 3)))
    data = bytearray(buffer.getvalue())
    data[place] = data[data.rindex(b"PK\x01\x02") + place + 2] = value
    (tmp_path / "x.npz").write_bytes(data)
    with pytest.raises(BrokenFile):
        list(array_rows(tmp_path / "x.npz", VIEWS[:1], "msgpack"))


def test_a_compressed_archive_takes_no_more_memory_than_a_block(tmp_path: Path) -> None:
    np.savez_compressed(tmp_path / "x.npz", a=np.zeros((2_000_000, 3), np.float32))
    assert (tmp_path / "x.npz").stat().st_size < 100_000
    tracemalloc.start()
    for _, _ in zip(
        range(1000), array_rows(tmp_path / "x.npz", VIEWS[:1], "msgpack"), strict=False
    ):
        pass
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 20_000_000


def test_arrays_by_column_and_by_row_are_the_same_records(tmp_path: Path) -> None:
    given = np.arange(15.0).reshape(5, 3)
    np.savez(tmp_path / "rows.npz", a=given)
    np.savez(tmp_path / "columns.npz", a=np.asfortranarray(given))
    by_row, by_column = (
        list(array_rows(tmp_path / f"{name}.npz", VIEWS[:1], "msgpack"))
        for name in ("rows", "columns")
    )
    assert by_row == by_column
    assert len(by_row) == 5
