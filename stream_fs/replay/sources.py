"""Files of records, by format: JSON lines, MessagePack, or arrays.

A value that a source hands out is one record as it stands in the file; whether it can be used is
for the pipeline to say, so a bad one becomes a dead letter and not an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Final, Literal

import msgpack
import numpy as np
from numpy.typing import NDArray

from stream_fs.errors import BrokenFile, InvalidParameter
from stream_fs.selector.archive import NUMBERS, Archive, Damaged, Header
from stream_fs.wire import DeclaredView, Format, encode_record

MOST_BYTES: Final = 64 << 20
"""Of a record; what is larger is no record but a file of another kind."""
UNPACK_BLOCK_BYTES: Final = 1 << 20

_MAPS: Final = frozenset([*range(0x80, 0x90), 0xDE, 0xDF])
"""First bytes of a map in MessagePack."""


def json_lines(file: BinaryIO, name: str) -> Iterator[tuple[bytes, int]]:
    """The lines without their ends, and the position behind each; empty lines are no records.

    Raises `BrokenFile` where there is no end of line for far too long.
    """
    position = 0
    while line := file.readline(MOST_BYTES + 1):
        if len(line) > MOST_BYTES:
            raise BrokenFile(
                f"{name}: the line that begins at byte {position} has more than {MOST_BYTES} "
                "bytes: is this a file of JSON lines, one record in each?"
            )
        position += len(line)
        value = line.removesuffix(b"\n").removesuffix(b"\r")
        if value.strip():
            yield value, position


def message_pack(file: BinaryIO, name: str) -> Iterator[tuple[bytes, int]]:
    """The objects that follow each other, and the position behind each.

    Raises `BrokenFile` with the position where bytes are no MessagePack: what follows them cannot
    be found, as nothing marks the beginning of a record.
    """
    unpacker = msgpack.Unpacker(max_buffer_size=MOST_BYTES + UNPACK_BLOCK_BYTES)
    left, start = b"", 0
    while block := file.read(_wanted(len(left))):
        if start == 0 and not left and block[0] not in _MAPS:
            raise BrokenFile(f"{name} is not a file of records in MessagePack: it begins otherwise")
        if len(left) > MOST_BYTES:
            raise BrokenFile(
                f"{name}: the record that begins at byte {start} has more than {MOST_BYTES} bytes"
            )
        unpacker.feed(block)
        left += block
        begin = start
        for end in _ends(unpacker, name, start):
            yield left[start - begin : end - begin], end
            start = end
        left = left[start - begin :]
    if left:
        raise BrokenFile(
            f"{name} ends within the record that begins at byte {start}: it is not whole, or "
            "still being written"
        )


def _wanted(left: int) -> int:
    """Bytes to read next; as many as are there, so that a long record is gone through few times."""
    return (
        min(max(UNPACK_BLOCK_BYTES, left), MOST_BYTES + UNPACK_BLOCK_BYTES - left)
        or UNPACK_BLOCK_BYTES
    )


def _ends(unpacker: msgpack.Unpacker, name: str, start: int) -> Iterator[int]:
    """The positions behind the objects that are whole."""
    while True:
        try:
            unpacker.skip()
        except msgpack.OutOfData:
            return
        except (msgpack.UnpackException, ValueError) as error:
            raise BrokenFile(
                f"{name}: what begins at byte {start} is not MessagePack "
                f"({type(error).__name__}), and the records behind it cannot be found: cut the "
                "file there, or write it anew"
            ) from error
        start = int(unpacker.tell())
        yield start


BLOCK_BYTES: Final = 8 << 20
"""Of all views together, in double precision."""
MOST_COLUMN_BYTES: Final = 2 << 30
"""Of an array that is written column by column."""

_NUMBER_BYTES: Final = 8


def rows(
    path: Path, declared: Sequence[DeclaredView], format: Format
) -> Iterator[tuple[bytes, float]]:
    """The rows as records, and the share of the file that is behind each.

    Raises `BrokenFile` where the file does not have the declared views.
    """
    dtypes = {view.name: view.dtype for view in declared}
    done = 0
    try:
        with Archive(path) as archive:
            names = _names(path, archive.names, declared)
            count = _count(path, archive, names, declared)
            for views in _blocks(archive, names, declared):
                for record in _records(views):
                    # Beyond the view's precision: the decoder refuses it.
                    with np.errstate(over="ignore"):
                        value = encode_record(record, format=format, dtypes=dtypes)
                    done += 1
                    yield value, done / count
    except Damaged as error:
        raise BrokenFile(f"{path} cannot be read as .npz: {error}") from error


def _records(views: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
    """Some rows of all views, by record; a row of NaN is a missing view."""
    missing = {name: np.isnan(array).all(axis=1) for name, array in views.items()}
    for row in range(len(next(iter(views.values())))):
        yield {name: None if missing[name][row] else array[row] for name, array in views.items()}


def _blocks(
    archive: Archive, names: Sequence[str], declared: Sequence[DeclaredView]
) -> Iterator[dict[str, NDArray[Any]]]:
    """The views, some rows at a time."""
    width = sum(view.dimension for view in declared)
    size = max(1, BLOCK_BYTES // (_NUMBER_BYTES * width))
    streams = [_even(archive.blocks(name, size), size) for name in names]
    for arrays in zip(*streams, strict=True):
        yield {view.name: array for view, array in zip(declared, arrays, strict=True)}


def _even(blocks: Iterator[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """Blocks of so many rows, also from an array that comes as a whole."""
    for block in blocks:
        for start in range(0, len(block), size):
            yield block[start : start + size]


def _count(
    path: Path, archive: Archive, names: Sequence[str], declared: Sequence[DeclaredView]
) -> int:
    """How many rows every view has."""
    lengths = {}
    for view, name in zip(declared, names, strict=True):
        header = archive.header(name)
        _check(path, view, name, header)
        lengths[view.name] = header.shape[0]
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise BrokenFile(f"{path}: its views have different numbers of rows: {told}")
    return lengths[declared[0].name]


def _names(path: Path, found: Sequence[str], declared: Sequence[DeclaredView]) -> list[str]:
    """The names of the arrays of the declared views."""
    named = [view.name for view in declared]
    if set(named) <= set(found):
        return named
    numbered = [f"view_{number}" for number in range(len(declared))]
    if set(numbered) <= set(found) and f"view_{len(declared)}" not in found:
        return numbered
    raise BrokenFile(
        f"{path} does not have the declared views: it needs arrays named {', '.join(named)}, or "
        f"view_0 … view_{len(declared) - 1} in that order; it has {', '.join(found) or 'none'}"
    )


def _check(path: Path, view: DeclaredView, name: str, header: Header) -> None:
    if header.dtype.kind not in NUMBERS:
        raise BrokenFile(f"{path}: {name} is of type {header.dtype}, not numbers")
    if len(header.shape) != 2 or header.shape[1] != view.dimension:
        raise BrokenFile(
            f"{path}: {name} has shape {header.shape}, but view {view.name!r} is declared with "
            f"{view.dimension} features: it should be instances × {view.dimension}"
        )
    if header.columns and header.bytes > MOST_COLUMN_BYTES:
        raise BrokenFile(
            f"{path}: {name} is written column by column, and its {header.bytes} bytes would have "
            "to be in memory at once: write it row by row (numpy.ascontiguousarray)"
        )


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
