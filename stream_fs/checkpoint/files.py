"""A snapshot in one file, which is there whole or not at all.

    magic ─ u32 length of the manifest ─ u32 number of parts ─ u32 length of each part
          ─ manifest ─ parts

Integers are little-endian. The manifest and its checksums guard the content; the file adds only
what the keys of the state topic say there.
"""

from __future__ import annotations

import os
import struct
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final

from stream_fs.checkpoint.snapshot import Snapshot
from stream_fs.errors import CorruptSnapshot

MAGIC: Final = b"stream-fs snapshot\n"

_HEAD: Final = struct.Struct("<II")
_LENGTH: Final = 4


def write_snapshot(path: str | PathLike[str], snapshot: Snapshot) -> None:
    """Write the file under a temporary name beside it, and rename it when it is safe on disk.

    A crash leaves the old file or the new one, never anything between.
    """
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    lengths = [len(part) for part in snapshot.parts]
    try:
        with unfinished.open("wb") as file:
            file.write(MAGIC)
            file.write(_HEAD.pack(len(snapshot.manifest), len(lengths)))
            file.write(struct.pack(f"<{len(lengths)}I", *lengths))
            file.write(snapshot.manifest)
            file.writelines(snapshot.parts)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
        _sync_directory(target.parent)
    finally:
        unfinished.unlink(missing_ok=True)


def read_snapshot(path: str | PathLike[str]) -> Snapshot:
    """The inverse of `write_snapshot`, ready for `decode`.

    Raises `CorruptSnapshot` for a file that is torn or not one of ours, `OSError` where it cannot
    be read at all. No length is believed before it has been compared with the file's.
    """
    with Path(path).open("rb") as file:
        reader = _Reader(file)
        if reader.take(len(MAGIC)) != MAGIC:
            raise CorruptSnapshot(f"{path} is not a snapshot")
        manifest, count = _HEAD.unpack(reader.take(_HEAD.size))
        lengths = struct.unpack(f"<{count}I", reader.take(_LENGTH * count))
        snapshot = Snapshot(reader.take(manifest), tuple(map(reader.take, lengths)))
        if reader.left:
            raise CorruptSnapshot(f"{path} is {reader.left} bytes longer than its snapshot")
        return snapshot


class _Reader:
    """Reads a file from its beginning; nothing is asked for that it does not have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.left = os.fstat(file.fileno()).st_size

    def take(self, length: int) -> bytes:
        """The next bytes, all of them."""
        data = self._file.read(length) if length <= self.left else b""
        if len(data) < length:
            raise CorruptSnapshot(f"{self._file.name} is not a whole snapshot: it ends too early")
        self.left -= length
        return data


def _sync_directory(directory: Path) -> None:
    """Make a rename in it survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
