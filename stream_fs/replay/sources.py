"""Files of records, in any format, or of arrays.

A value that a source hands out is one record as it stands in the file; whether it can be used is
for the pipeline to say, so a bad one becomes a dead letter and not an error.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_fs.errors import BrokenFile, InvalidParameter
from stream_fs.selector.archive import NUMBERS, Archive, Damaged, Header
from stream_fs.wire import FORMATS, DeclaredView, RecordFormat, encode_record

MOST_BYTES: Final = 64 << 20
"""Of a record; what is larger is no record but a file of another kind."""
BLOCK_BYTES: Final = 8 << 20
"""Of all views together, in double precision."""
MOST_COLUMN_BYTES: Final = 2 << 30
"""Of an array that is written column by column."""

_NUMBER_BYTES: Final = 8


def rows(
    path: Path, declared: Sequence[DeclaredView], format: RecordFormat
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


FileFormat: TypeAlias = str
"""The name of a format of records, as files have them, or `npz`."""
ARRAYS: Final[FileFormat] = "npz"
STANDARD_INPUT: Final = "-"


def file_formats() -> dict[FileFormat, RecordFormat | None]:
    """The formats of files, and that of their records; None for arrays, which have none."""
    return {**{FORMATS[name].files.name: name for name in FORMATS}, ARRAYS: None}


def file_format(name: str, said: FileFormat | None = None) -> FileFormat:
    """The format of a file: what the user said, or what its name ends with."""
    if said is not None:
        if said == ARRAYS and name == STANDARD_INPUT:
            raise InvalidParameter("an .npz file cannot be read from standard input: name the file")
        return said
    if name == STANDARD_INPUT:
        raise InvalidParameter("standard input has no name to tell its format: give --format")
    suffixes = {
        suffix: format.files.name for format in FORMATS.values() for suffix in format.files.suffixes
    } | {".npz": ARRAYS}
    known = suffixes.get(Path(name).suffix.lower())
    if known is None:
        raise InvalidParameter(
            f"{name}: the name does not tell the format ({', '.join(suffixes)}): give --format"
        )
    return known


class Source:
    """One file of records, or standard input (`-`), each iteration from its beginning.

    `wanted` is the format of records that are made from arrays; the others are as they are, see
    `format`.
    """

    def __init__(
        self, name: str, kind: FileFormat, declared: Sequence[DeclaredView], wanted: RecordFormat
    ) -> None:
        self._name = name
        self._kind = kind
        self._declared = tuple(declared)
        self.format: RecordFormat = file_formats()[kind] or wanted
        """Of the records that it hands out."""
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
        if self._kind == ARRAYS:
            for value, share in rows(Path(self._name), self._declared, self.format):
                self.done = round(share * (self.size or 0))
                yield value
            return
        split = FORMATS[self.format].files.split
        try:
            with self._open() as file:
                for value, behind in split(file, self._shown, MOST_BYTES):
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
