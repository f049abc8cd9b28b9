"""Files of records, by format: JSON lines, MessagePack, or arrays.

A value that a source hands out is one record as it stands in the file; whether it can be used is
for the pipeline to say, so a bad one becomes a dead letter and not an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import BinaryIO, Final, Literal

from stream_fs.errors import BrokenFile, InvalidParameter
from stream_fs.replay.arrays import rows
from stream_fs.replay.framing import json_lines, message_pack
from stream_fs.wire import DeclaredView, Format

FileFormat = Literal["jsonl", "msgpack", "npz"]
STANDARD_INPUT: Final = "-"

_SUFFIXES: Final[dict[str, FileFormat]] = {
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".msgpack": "msgpack",
    ".mpk": "msgpack",
    ".npz": "npz",
}


def file_format(name: str, said: FileFormat | None = None) -> FileFormat:
    """The format of a file: what the user said, or what its name ends with."""
    if said is not None:
        if said == "npz" and name == STANDARD_INPUT:
            raise InvalidParameter("an .npz file cannot be read from standard input: name the file")
        return said
    if name == STANDARD_INPUT:
        raise InvalidParameter("standard input has no name to tell its format: give --format")
    known = _SUFFIXES.get(Path(name).suffix.lower())
    if known is None:
        raise InvalidParameter(
            f"{name}: the name does not tell the format ({', '.join(_SUFFIXES)}): give --format"
        )
    return known


class Source:
    """One file of records, or standard input (`-`), each iteration from its beginning.

    `wanted` is the format of records that are made from arrays; the others are as they are, see
    `format`.
    """

    def __init__(
        self, name: str, kind: FileFormat, declared: Sequence[DeclaredView], wanted: Format
    ) -> None:
        self._name = name
        self._kind = kind
        self._declared = tuple(declared)
        self.format: Format = "json" if kind == "jsonl" else "msgpack"
        """Of the records that it hands out."""
        if kind == "npz":
            self.format = wanted
        self.done = 0
        """Bytes of the file that are behind the last record handed out."""
        path = Path(name)
        if name != STANDARD_INPUT and not path.exists():
            raise InvalidParameter(f"there is no file {name}")
        if path.is_dir():
            raise InvalidParameter(f"{name} is a directory, not a file of records")
        self.size = path.stat().st_size if path.is_file() else None
        """Bytes of the file; None where that is not known beforehand."""

    def __iter__(self) -> Iterator[bytes]:
        self.done = 0
        if self._kind == "npz":
            for value, share in rows(Path(self._name), self._declared, self.format):
                self.done = round(share * (self.size or 0))
                yield value
            return
        framed = json_lines if self._kind == "jsonl" else message_pack
        try:
            with self._open() as file:
                for value, behind in framed(file, self._shown):
                    self.done = behind
                    yield value
        except OSError as error:
            raise BrokenFile(f"{self._shown} cannot be read: {error.strerror}") from error

    @property
    def _shown(self) -> str:
        return "standard input" if self._name == STANDARD_INPUT else self._name

    def _open(self) -> nullcontext[BinaryIO] | BinaryIO:
        if self._name == STANDARD_INPUT:
            return nullcontext(sys.stdin.buffer)
        return Path(self._name).open("rb")
