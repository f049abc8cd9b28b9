"""Records from arrays: an `.npz` file with one array, instances × features, for every view.

The arrays are named as the declared views, or `view_0 … view_k` in their order. A row of NaN is a
missing view. Other arrays in the file, such as labels, are not read. The arrays are in memory while
the file is read; it is the one format for which that is so.
"""

from __future__ import annotations

import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from stream_fs.errors import BrokenFile
from stream_fs.wire import DeclaredView, Format, encode_record


def rows(
    path: Path, declared: Sequence[DeclaredView], format: Format
) -> Iterator[tuple[bytes, float]]:
    """The rows as records, and the share of the file that is behind each.

    Raises `BrokenFile` where the file does not have the declared views.
    """
    views = _views(path, declared)
    missing = {name: np.isnan(array).all(axis=1) for name, array in views.items()}
    dtypes = {view.name: view.dtype for view in declared}
    count = len(next(iter(views.values())))
    for row in range(count):
        record = {name: None if missing[name][row] else array[row] for name, array in views.items()}
        with np.errstate(over="ignore"):  # beyond the view's precision: the decoder refuses it
            value = encode_record(record, format=format, dtypes=dtypes)
        yield value, (row + 1) / count


def _views(path: Path, declared: Sequence[DeclaredView]) -> dict[str, NDArray[Any]]:
    try:
        archive = np.load(path, allow_pickle=False)
        if not isinstance(archive, np.lib.npyio.NpzFile):
            raise BrokenFile(f"{path} is one array, not an .npz file with one for each view")
        with archive:
            names = _names(path, archive.files, declared)
            views = {view.name: archive[name] for view, name in zip(declared, names, strict=True)}
    except (ValueError, zipfile.BadZipFile, EOFError) as error:
        raise BrokenFile(f"{path} cannot be read as .npz: {error}") from error
    for view, name in zip(declared, names, strict=True):
        _check(path, view, name, views[view.name])
    lengths = {name: len(array) for name, array in views.items()}
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{name} {length}" for name, length in lengths.items())
        raise BrokenFile(f"{path}: its views have different numbers of rows: {told}")
    return views


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


def _check(path: Path, view: DeclaredView, name: str, array: NDArray[Any]) -> None:
    if array.dtype.kind not in "fiub":
        raise BrokenFile(f"{path}: {name} is of type {array.dtype}, not numbers")
    if array.ndim != 2 or array.shape[1] != view.dimension:
        raise BrokenFile(
            f"{path}: {name} has shape {array.shape}, but view {view.name!r} is declared with "
            f"{view.dimension} features: it should be instances × {view.dimension}"
        )
