"""An exported model in one file, which is there whole or not at all.

    magic ─ u32 length and u32 CRC-32 of the progress record ─ u32 length of the manifest
          ─ u32 number of parts ─ u32 length of each part ─ progress record ─ manifest ─ parts

Integers are little-endian. The manifest and its checksums guard the snapshot; the file adds only
what the keys of the state topic say there.
"""

from __future__ import annotations

import errno
import os
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import BinaryIO, Final

from stream_fs.checkpoint.progress import Progress, decode_progress, encode_progress
from stream_fs.checkpoint.snapshot import Snapshot
from stream_fs.errors import CannotWrite, CorruptSnapshot

MAGIC: Final = b"stream-fs checkpoint 1\n"

_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_NO_PLACE: Final = (
    errno.EACCES,
    errno.EPERM,
    errno.EROFS,
    errno.ENOENT,
    errno.ENOTDIR,
    errno.EISDIR,
    errno.ENAMETOOLONG,
)
_HEAD: Final = struct.Struct("<IIII")
_LENGTH: Final = 4


@dataclass(frozen=True, slots=True)
class Export:
    """A snapshot, and how far the rankings were; they may be some chunks ahead of it."""

    snapshot: Snapshot
    progress: Progress


def write_export(path: str | PathLike[str], export: Export) -> None:
    """Write the file under a temporary name beside it, and rename it when it is safe on disk.

    A crash leaves the old file or the new one, never anything between. Raises `CannotWrite` where
    there is no room, or no such place.
    """
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    snapshot, progress = export.snapshot, encode_progress(export.progress)
    lengths = [len(part) for part in snapshot.parts]
    head = (len(progress), zlib.crc32(progress), len(snapshot.manifest), len(lengths))
    with writing(target):
        file = unfinished.open("wb")
        try:
            with file:
                file.write(MAGIC)
                file.write(_HEAD.pack(*head))
                file.write(struct.pack(f"<{len(lengths)}I", *lengths))
                file.write(progress)
                file.write(snapshot.manifest)
                file.writelines(snapshot.parts)
                file.flush()
                os.fsync(file.fileno())
            unfinished.replace(target)
            sync_directory(target.parent)
        finally:
            unfinished.unlink(missing_ok=True)


def read_export(path: str | PathLike[str]) -> Export:
    """The inverse of `write_export`; the snapshot is ready for `decode`.

    Raises `CorruptSnapshot` for a file that is torn or not one of ours, what `decode_progress`
    does, and `OSError` where it cannot be read at all. No length is believed before it has been
    compared with the file's.
    """
    with Path(path).open("rb") as file:
        reader = _Reader(file)
        if reader.take(len(MAGIC)) != MAGIC:
            raise CorruptSnapshot(f"{path} is not a checkpoint that was exported")
        length, crc, manifest, count = _HEAD.unpack(reader.take(_HEAD.size))
        lengths = struct.unpack(f"<{count}I", reader.take(_LENGTH * count))
        progress = reader.take(length)
        if zlib.crc32(progress) != crc:
            raise CorruptSnapshot(
                f"{path} is altered: its progress record is not as it was written"
            )
        snapshot = Snapshot(reader.take(manifest), tuple(map(reader.take, lengths)))
        if reader.left:
            raise CorruptSnapshot(f"{path} is {reader.left} bytes longer than its content")
        return Export(snapshot, decode_progress(progress))


class _Reader:
    """Reads a file from its beginning; nothing is asked for that it does not have."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.left = os.fstat(file.fileno()).st_size

    def take(self, length: int) -> bytes:
        """The next bytes, all of them."""
        data = self._file.read(length) if length <= self.left else b""
        if len(data) < length:
            raise CorruptSnapshot(f"{self._file.name} is not whole: it ends too early")
        self.left -= length
        return data


@contextmanager
def writing(path: object) -> Iterator[None]:
    """Tell in our words what keeps a file from being written: `CannotWrite`."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*_NO_ROOM, *_NO_PLACE):
            raise
        raise CannotWrite(path, error.strerror or "no reason is given") from error


def close_after_all(file: BinaryIO) -> None:
    """Close a file; where a write has failed, its buffer fails once more, and is of no use."""
    # The descriptor is closed even so. What was to be kept has been synced, or its failure told.
    with suppress(OSError):
        file.close()


def sync_directory(directory: Path) -> None:
    """Make a rename in it survive a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
