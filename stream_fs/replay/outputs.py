"""Where rankings and dead letters of a replay go: files, which can be cut back, or a stream."""

from __future__ import annotations

import base64
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import BinaryIO, Protocol

import orjson

from stream_fs.checkpoint.files import close_quietly, sync_directory, translate_write_errors
from stream_fs.errors import InvalidParameter, ReplayChanged
from stream_fs.pipeline.ports import OutgoingRecord
from stream_fs.wire import RankingFormat

Written = Callable[[OutgoingRecord], bytes]


class Output(Protocol):
    """Takes what is published to one topic."""

    length: int
    """Bytes of it so far."""

    def begin(self, length: int, checkpoint: str) -> None:
        """Begin behind so many bytes, and drop what an earlier life has left behind them."""
        ...

    def append(self, records: Sequence[OutgoingRecord]) -> None:
        """Write records; they are safe when this returns."""
        ...

    def close(self) -> None:
        """Let go."""
        ...


class FileOutput:
    """A file."""

    def __init__(self, path: Path, written: Written) -> None:
        with translate_write_errors(path):
            if path.exists() and not path.is_file():
                raise InvalidParameter(f"{path} is not a plain file, and cannot be cut back")
        self._path = path
        self._written = written
        self._file: BinaryIO | None = None
        self.length = 0

    def begin(self, length: int, checkpoint: str) -> None:
        """Open the file; `ReplayChanged` where it lacks what was written, or `CannotWrite`."""
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
        """Write, and wait for the disk; `CannotWrite` where it is full."""
        assert self._file is not None
        with translate_write_errors(self._path):
            for record in records:
                self.length += self._file.write(self._written(record))
            self._file.flush()
            os.fsync(self._file.fileno())

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            close_quietly(self._file)


class StreamOutput:
    """A pipe or a terminal: what is written cannot be taken back, so nothing can be resumed."""

    def __init__(self, stream: BinaryIO, written: Written) -> None:
        self._stream = stream
        self._written = written
        self.length = 0

    def begin(self, length: int, checkpoint: str) -> None:
        """Nothing to go back to."""
        if length:
            raise ReplayChanged(checkpoint, [f"output: {length} bytes of a file → a stream"])

    def append(self, records: Sequence[OutgoingRecord]) -> None:
        """Write at once, for whoever waits at the other end; `CannotWrite` where it is full."""
        with translate_write_errors("standard output"):
            for record in records:
                self.length += self._stream.write(self._written(record))
            self._stream.flush()

    def close(self) -> None:
        """The stream is not ours."""


class NoOutput:
    """Nobody asked for it."""

    length = 0

    def begin(self, length: int, checkpoint: str) -> None:
        """Nothing to begin."""

    def append(self, records: Sequence[OutgoingRecord]) -> None:
        """Nothing is kept."""

    def close(self) -> None:
        """Nothing to close."""


def ranking_lines(format: RankingFormat) -> Written:
    """Rankings byte for byte as they are published; in JSON, one a line."""
    end = b"\n" if format == "json" else b""
    return lambda record: (record.value or b"") + end


def dead_letter_line(record: OutgoingRecord) -> bytes:
    """A dead letter in JSON, one a line: key and value as Base64, headers as text."""
    return orjson.dumps(
        {
            "headers": {name: _text(value) for name, value in record.headers},
            "key": _base64(record.key),
            "value": _base64(record.value),
        },
        option=orjson.OPT_APPEND_NEWLINE,
    )


def _text(value: bytes | None) -> str | None:
    """Ours are UTF-8; what others have put into theirs is shown as far as it can be."""
    return None if value is None else value.decode(errors="backslashreplace")


def _base64(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()
