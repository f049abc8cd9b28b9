"""The outputs of a replay: files, which can be truncated to an earlier length, or a stream."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol, TypeAlias

import orjson

from stream_fs.checkpoint.files import close_quietly, sync_directory, translate_write_errors
from stream_fs.errors import InvalidParameter, ReplayChanged
from stream_fs.pipeline.ports import OutgoingRecord
from stream_fs.wire import RankingFormat

RecordEncoder: TypeAlias = Callable[[OutgoingRecord], bytes]


class Output(Protocol):
    """Receives the records that are published to one topic."""

    length: int
    """Bytes written so far."""

    def begin(self, length: int, checkpoint: str) -> None:
        """Continue after `length` bytes, and discard what follows them."""
        ...

    def append(self, records: Sequence[OutgoingRecord]) -> None:
        """Write records and wait until they are safe."""
        ...

    def close(self) -> None:
        """Release the resources."""
        ...


class FileOutput:
    """Appends to a file."""

    def __init__(self, path: Path, encode: RecordEncoder) -> None:
        with translate_write_errors(path):
            if path.exists() and not path.is_file():
                raise InvalidParameter(f"{path} is not a regular file, and cannot be truncated")
        self._path = path
        self._encode = encode
        self._file: BinaryIO | None = None
        self.length = 0

    def begin(self, length: int, checkpoint: str) -> None:
        """Open the file; raises `ReplayChanged` where it is too short, or `CannotWrite`."""
        found = self._path.stat().st_size if self._path.exists() else 0
        if found < length:
            raise ReplayChanged(checkpoint, [f"{self._path}: {length} bytes → {found} bytes"])
        with translate_write_errors(self._path):
            self._file = self._path.open("r+b" if self._path.exists() else "xb")
            self._file.truncate(length)
            self._file.seek(length)
            sync_directory(self._path.parent)
        self.length = length

    def append(self, records: Sequence[OutgoingRecord]) -> None:
        """Write and synchronise; raises `CannotWrite` where the disk is full."""
        assert self._file is not None
        with translate_write_errors(self._path):
            for record in records:
                self.length += self._file.write(self._encode(record))
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            close_quietly(self._file)


class StreamOutput:
    """Writes to a pipe or a terminal, whose content cannot be truncated: no replay can resume."""

    def __init__(self, stream: BinaryIO, encode: RecordEncoder) -> None:
        self._stream = stream
        self._encode = encode
        self.length = 0

    def begin(self, length: int, checkpoint: str) -> None:
        """Refuse to continue an earlier run."""
        if length:
            raise ReplayChanged(checkpoint, [f"output: {length} bytes of a file → a stream"])

    def append(self, records: Sequence[OutgoingRecord]) -> None:
        """Write without buffering; raises `CannotWrite` where that fails."""
        with translate_write_errors("standard output"):
            for record in records:
                self.length += self._stream.write(self._encode(record))
            self._stream.flush()

    def close(self) -> None:
        """Do nothing: the stream is not owned."""


class NoOutput:
    """Discards records."""

    length = 0

    def begin(self, length: int, checkpoint: str) -> None:
        """Do nothing."""

    def append(self, records: Sequence[OutgoingRecord]) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing."""


def ranking_lines(format: RankingFormat) -> RecordEncoder:
    """Encodes rankings as they are published; in JSON, one per line."""
    end = b"\n" if format == "json" else b""
    return lambda record: (record.value or b"") + end


def dead_letter_line(record: OutgoingRecord) -> bytes:
    """A dead letter as a line of JSON: key and value in Base64, headers as text."""
    return orjson.dumps(
        {
            "headers": {name: _text(value) for name, value in record.headers},
            "key": _base64(record.key),
            "value": _base64(record.value),
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


def _text(value: bytes | None) -> str | None:
    """Headers of the service are UTF-8; in other headers, invalid bytes are escaped."""
    return None if value is None else value.decode(errors="backslashreplace")


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
