"""Records from arrays: an `.npz` file with one array, instances × features, for every view.

The arrays are named as the declared views, or `view_0 … view_k` in their order. A row of NaN is a
missing view. Other arrays in the file, such as labels, are not read. A block of rows is in
memory at a time; only an array that is written column by column has to be there as a whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from stream_fs.errors import BrokenFile
from stream_fs.selector.archive import NUMBERS, Archive, Damaged, Header
from stream_fs.wire import DeclaredView, Format, encode_record

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
