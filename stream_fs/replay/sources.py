"""Reading files of records, in any format, or of arrays.

A source yields records as they are in the file, without decoding them: a bad one becomes a dead
letter in the pipeline and is no error here.
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

FileFormat: TypeAlias = str
"""The name of a format of files of records, or `npz`."""
ARRAYS: Final[FileFormat] = "npz"
STANDARD_INPUT: Final = "-"


def file_formats() -> dict[FileFormat, RecordFormat | None]:
    """The formats of files, each with the format of its records; None for arrays."""
    return {**{FORMATS[name].files.name: name for name in FORMATS}, ARRAYS: None}


def file_format(name: str, given: FileFormat | None = None) -> FileFormat:
    """The format of a file: as given, or by the suffix of its name."""
    if given is not None:
        if given == ARRAYS and name == STANDARD_INPUT:
            raise InvalidParameter("an .npz file cannot be read from standard input: name the file")
        return given
    if name == STANDARD_INPUT:
        raise InvalidParameter("standard input has no file name suffix: give --format")
    suffixes = {
        suffix: format.files.name for format in FORMATS.values() for suffix in format.files.suffixes
    } | {".npz": ARRAYS}
    known = suffixes.get(Path(name).suffix.lower())
    if known is None:
        raise InvalidParameter(
            f"{name}: unknown file name suffix (known: {', '.join(suffixes)}): give --format"
        )
    return known


class Source:
    """A file of records, or standard input (`-`); each iteration starts at its beginning.

    `wanted` is the format into which rows of arrays are encoded; other records are not converted.
    """

    def __init__(
        self, name: str, kind: FileFormat, declared: Sequence[DeclaredView], wanted: RecordFormat
    ) -> None:
        self._name = name
        self._kind = kind
        self._declared = tuple(declared)
        self.format: RecordFormat = file_formats()[kind] or wanted
        """The format of the records."""
        self.done = 0
        """Bytes of the file up to the last record that was yielded."""
        path = Path(name)
        if name != STANDARD_INPUT and not path.exists():
            raise InvalidParameter(f"there is no file {name}")
        if path.is_dir():
            raise InvalidParameter(f"{name} is a directory, not a file of records")
        self.size = path.stat().st_size if path.is_file() else None
        """Bytes of the file; None where that is unknown."""

    def __iter__(self) -> Iterator[bytes]:
        self.done = 0
        if self._kind == ARRAYS:
            for value, share in array_rows(Path(self._name), self._declared, self.format):
                self.done = round(share * (self.size or 0))
                yield value
            return
        split = FORMATS[self.format].files.split
        try:
            with self._open() as file:
                for value, end in split(file, self._label, MAX_RECORD_BYTES):
                    self.done = end
                    yield value
        except OSError as error:
            raise BrokenFile(f"{self._label} cannot be read: {error.strerror}") from error

    @property
    def _label(self) -> str:
        return "standard input" if self._name == STANDARD_INPUT else self._name

    def _open(self) -> nullcontext[BinaryIO] | BinaryIO:
        if self._name == STANDARD_INPUT:
            return nullcontext(sys.stdin.buffer)
        return Path(self._name).open("rb")


MAX_RECORD_BYTES: Final = 64 << 20
"""A larger record indicates a file of another kind."""
BLOCK_BYTES: Final = 8 << 20
"""Size of a block of rows of all views, in double precision."""
MAX_COLUMN_MAJOR_BYTES: Final = 2 << 30
"""Of an array in column-major order, which is read as a whole."""

_NUMBER_BYTES: Final = 8


def array_rows(
    path: Path, declared: Sequence[DeclaredView], format: RecordFormat
) -> Iterator[tuple[bytes, float]]:
    """The rows as encoded records, each with the share of the file up to it.

    Raises `BrokenFile` where the file does not contain the declared views.
    """
    dtypes = {view.name: view.dtype for view in declared}
    done = 0
    try:
        with Archive(path) as archive:
            names = _names(path, archive.names, declared)
            count = _count(path, archive, names, declared)
            for views in _blocks(archive, names, declared):
                for record in _records(views):
                    # A value beyond the view's precision is refused by the decoder.
                    with np.errstate(over="ignore"):
                        value = encode_record(record, format=format, dtypes=dtypes)
                    done += 1
                    yield value, done / count
    except Damaged as error:
        raise BrokenFile(f"{path} cannot be read as .npz: {error}") from error


def _records(views: Mapping[str, NDArray[Any]]) -> Iterator[dict[str, Any]]:
    """Rows of all views as records; a row of NaN is a missing view."""
    missing = {name: np.isnan(array).all(axis=1) for name, array in views.items()}
    for row in range(len(next(iter(views.values())))):
        yield {name: None if missing[name][row] else array[row] for name, array in views.items()}


def _blocks(
    archive: Archive, names: Sequence[str], declared: Sequence[DeclaredView]
) -> Iterator[dict[str, NDArray[Any]]]:
    """The views, in blocks of rows."""
    width = sum(view.dimension for view in declared)
    size = max(1, BLOCK_BYTES // (_NUMBER_BYTES * width))
    streams = [_even(archive.blocks(name, size), size) for name in names]
    for arrays in zip(*streams, strict=True):
        yield {view.name: array for view, array in zip(declared, arrays, strict=True)}


def _even(blocks: Iterator[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """Blocks of `size` rows, also of an array that is read as a whole."""
    for block in blocks:
        for start in range(0, len(block), size):
            yield block[start : start + size]


def _count(
    path: Path, archive: Archive, names: Sequence[str], declared: Sequence[DeclaredView]
) -> int:
    """The number of rows, which all views share."""
    lengths = {}
    for view, name in zip(declared, names, strict=True):
        header = archive.header(name)
        _check(path, view, name, header)
        lengths[view.name] = header.shape[0]
    if len(set(lengths.values())) > 1:
        listed = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise BrokenFile(f"{path}: its views have different numbers of rows: {listed}")
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
        f"{path} does not contain the declared views: it needs arrays named {', '.join(named)}, or "
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
    if header.columns and header.bytes > MAX_COLUMN_MAJOR_BYTES:
        raise BrokenFile(
            f"{path}: {name} is in column-major order, and its {header.bytes} bytes would have "
            "to be in memory at once: write it in row-major order (numpy.ascontiguousarray)"
        )
