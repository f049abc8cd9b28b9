from __future__ import annotations

import errno
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.checkpoint.files import MAGIC, Export, read_export, write_export
from stream_fs.checkpoint.keys import Owner
from stream_fs.checkpoint.progress import Progress, SnapshotPlace
from stream_fs.checkpoint.snapshot import Snapshot, decode_snapshot, encode_snapshot
from stream_fs.errors import CannotWrite, CheckpointError, CorruptSnapshot
from tests.support.models import model_params, state_content, trained_state

STATE = trained_state(model_params())
SNAPSHOT = encode_snapshot(STATE, 140, {"chosen": [1, 2]}, part_bytes=5_000)
PROGRESS = Progress(
    chunk=4,
    from_offset=10,
    next_offset=20,
    snapshots=(SnapshotPlace(3, 4, 99),),
    digest="0" * 64,
    fingerprint="00ff",
    owner=Owner("digits", "digits"),
)
EXPORT = Export(SNAPSHOT, PROGRESS)
OLD = Export(Snapshot(b"old manifest", (b"old", b"parts")), PROGRESS)
HEAD = len(MAGIC) + 16 + 4 * len(SNAPSHOT.parts)


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    path = tmp_path_factory.mktemp("files") / "model"
    write_export(path, EXPORT)
    return path.read_bytes()


@pytest.fixture(scope="module")
def damaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("files") / "damaged"


def restore(path: Path) -> None:
    snapshot = read_export(path).snapshot
    decode_snapshot(snapshot.manifest, snapshot.parts, STATE.params)


def test_an_export_is_read_back(tmp_path: Path) -> None:
    path = tmp_path / "model"
    for export in (OLD, Export(Snapshot(b"", ()), PROGRESS), EXPORT):
        write_export(path, export)
        assert read_export(path) == export
    read = read_export(path).snapshot
    assert state_content(
        decode_snapshot(read.manifest, read.parts, STATE.params).state
    ) == state_content(STATE)
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


def test_a_name_in_the_current_directory_is_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_export("model", OLD)
    assert read_export("model") == OLD


def test_an_incomplete_file_is_rejected_at_every_length(written: bytes, damaged: Path) -> None:
    head = HEAD + 200
    lengths = [*range(head), *range(head, len(written), 997), len(written) - 1]
    for length in lengths:
        damaged.write_bytes(written[:length])
        with pytest.raises(CorruptSnapshot):
            restore(damaged)


def test_a_longer_file_is_rejected(written: bytes, damaged: Path) -> None:
    damaged.write_bytes(written + b"\0")
    with pytest.raises(CorruptSnapshot, match="1 bytes longer"):
        restore(damaged)


@given(st.data())
def test_a_flipped_bit_is_detected(written: bytes, damaged: Path, data: st.DataObject) -> None:
    last = data.draw(st.sampled_from([HEAD, HEAD + 100, len(written)]))
    bit = data.draw(st.integers(0, 8 * last - 1))
    altered = bytearray(written)
    altered[bit // 8] ^= 1 << bit % 8
    damaged.write_bytes(altered)
    with pytest.raises(CheckpointError):
        restore(damaged)


@given(st.binary(max_size=100))
def test_any_other_file_is_rejected(damaged: Path, data: bytes) -> None:
    for content_ in (data, MAGIC + data):
        damaged.write_bytes(content_)
        with pytest.raises(CorruptSnapshot):
            restore(damaged)


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read_export(tmp_path / "none")


def test_a_failure_before_the_rename_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    write_export(path, OLD)

    def refuse(_: object) -> None:
        raise OSError(errno.ENOSPC, "no space left")

    monkeypatch.setattr(os, "fsync", refuse)
    with pytest.raises(CannotWrite, match="model cannot be written: no space left"):
        write_export(path, EXPORT)
    assert read_export(path) == OLD
    assert [entry.name for entry in tmp_path.iterdir()] == ["model"]


CRASH = """
import os, pathlib, sys
from stream_fs.checkpoint.files import read_export, write_export
old = read_export(sys.argv[1])
pathlib.Path.replace = lambda *_: os._exit(9)
write_export(sys.argv[1], old)
"""


def test_a_crash_before_the_rename_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "model"
    write_export(path, OLD)
    crashed = subprocess.run([sys.executable, "-c", CRASH, path], check=False)
    assert crashed.returncode == 9
    assert read_export(path) == OLD
    left = {entry.name for entry in tmp_path.iterdir()}
    assert len(left) == 2, "the crash came before the file was written"
    write_export(path, EXPORT)
    assert read_export(path) == EXPORT


def test_content_is_synced_before_the_rename(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "model"
    order: list[str] = []
    sync, rename = os.fsync, Path.replace

    def syncing(descriptor: int) -> None:
        order.append("directory" if Path(f"/proc/self/fd/{descriptor}").is_dir() else "file")
        sync(descriptor)

    def renaming(source: Path, target: Path) -> Path:
        assert source.parent == target.parent
        order.append("rename")
        return rename(source, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(Path, "replace", renaming)
    write_export(path, EXPORT)
    assert order == ["file", "rename", "directory"]
