"""An exported model in one file, which is written completely or not at all.

    magic ─ u32 length and u32 CRC-32 of the progress record ─ u32 length of the manifest
          ─ u32 number of parts ─ u32 length of each part ─ progress record ─ manifest ─ parts

Integers are little-endian. The manifest and its checksums protect the snapshot; the file adds only
the information that the keys have in the state topic.
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

_FULL_ERRORS: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_PATH_ERRORS: Final = (
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
    """A snapshot, and the progress of the rankings, which may be some chunks ahead of it."""

    snapshot: Snapshot
    progress: Progress


def write_export(path: str | PathLike[str], export: Export) -> None:
    """Write the file under a temporary name beside it, and rename it after fsync.

    A crash leaves the old file or the new one. Raises `CannotWrite` where the disk is full or the
    path cannot be written.
    """
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    snapshot, progress = export.snapshot, encode_progress(export.progress)
    lengths = [len(part) for part in snapshot.parts]
    head = (len(progress), zlib.crc32(progress), len(snapshot.manifest), len(lengths))
    with translate_write_errors(target):
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
    """The inverse of `write_export`; the snapshot is input for `decode_snapshot`.

    Raises `CorruptSnapshot` for an incomplete or another kind of file, the errors of
    `decode_progress`, and `OSError` where it cannot be read. Every length is compared with that of
    the file before it is used.
    """
    with Path(path).open("rb") as file:
        reader = _Reader(file)
        if reader.take(len(MAGIC)) != MAGIC:
            raise CorruptSnapshot(f"{path} is not an exported checkpoint")
        length, crc, manifest, count = _HEAD.unpack(reader.take(_HEAD.size))
        lengths = struct.unpack(f"<{count}I", reader.take(_LENGTH * count))
        progress = reader.take(length)
        if zlib.crc32(progress) != crc:
            raise CorruptSnapshot(
                f"{path} is corrupt: the checksum of its progress record does not match"
            )
        snapshot = Snapshot(reader.take(manifest), tuple(map(reader.take, lengths)))
        if reader.left:
            raise CorruptSnapshot(f"{path} is {reader.left} bytes longer than its content")
        return Export(snapshot, decode_progress(progress))


class _Reader:
    """Reads a file from its beginning, never more than it has."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.left = os.fstat(file.fileno()).st_size

    def take(self, length: int) -> bytes:
        """The next `length` bytes."""
        data = self._file.read(length) if length <= self.left else b""
        if len(data) < length:
            raise CorruptSnapshot(f"{self._file.name} is incomplete: unexpected end of file")
        self.left -= length
        return data


@contextmanager
def translate_write_errors(path: object) -> Iterator[None]:
    """Raise `CannotWrite` for errors of the operating system that an operator can resolve."""
    try:
        yield
    except OSError as error:
        if error.errno not in (*_FULL_ERRORS, *_PATH_ERRORS):
            raise
        raise CannotWrite(path, error.strerror or "unknown error") from error


def close_quietly(file: BinaryIO) -> None:
    """Close a file. After a failed write the buffer fails again, which is ignored."""
    # The descriptor is closed nevertheless; data was synced before, or its failure was raised.
    with suppress(OSError):
        file.close()


def sync_directory(directory: Path) -> None:
    """Sync a directory, so that a rename in it survives a loss of power."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
