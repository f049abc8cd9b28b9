"""A selector in a file: a NumPy archive with a JSON description, read without pickle."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.errors import IncompatibleState
from stream_fs.selector.archive import Archive, Damaged
from stream_fs.selector.chunk import Chunk, ViewRows, read_chunk, refuse_empty_records
from stream_fs.selector.state import State, flatten, unflatten

FORMAT = "stream-fs selector"
VERSION = 1


def write_file(path: str | PathLike[str], state: State, waiting: Sequence[Chunk]) -> None:
    """Write the state and buffered rows atomically."""
    description, arrays = flatten(state)
    content: dict[str, Any] = {f"state.{name}": array for name, array in arrays.items()}
    for number, chunk in enumerate(waiting):
        for name, part in chunk.views.items():
            view = [view.name for view in state.params.views].index(name)
            content |= _rows_to_arrays(f"waiting.{number}.{view}", part)
    header = {
        "format": FORMAT,
        "version": VERSION,
        "state": description,
        "waiting": [chunk.size for chunk in waiting],
    }
    content["header"] = np.frombuffer(json.dumps(header).encode(), np.uint8)
    target = Path(path)
    unfinished = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        with unfinished.open("wb") as file:
            np.savez(file, allow_pickle=False, **content)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(target)
    finally:
        unfinished.unlink(missing_ok=True)


def read_file(path: str | PathLike[str]) -> tuple[State, tuple[Chunk, ...]]:
    """The inverse of `write_file`; `IncompatibleState` for any other file.

    Raises nothing else for any file, and allocates no more memory than its size accounts for.
    """
    try:
        content = _content(path)
        header = json.loads(content.pop("header").tobytes())
        if header["format"] != FORMAT:
            raise IncompatibleState(f"{path} is not a {FORMAT}")
        if header["version"] != VERSION:
            raise IncompatibleState(
                f"{path} has format version {str(header['version'])[:20]}, this release reads "
                f"{VERSION}"
            )
        state = unflatten(
            header["state"],
            {name.removeprefix("state."): array for name, array in content.items()},
        )
        waiting = tuple(
            _chunk_from_arrays(state, f"waiting.{number}", size, content)
            for number, size in enumerate(header["waiting"])
        )
    except (
        ArithmeticError,
        AttributeError,
        LookupError,
        RecursionError,
        TypeError,
        ValueError,
    ) as error:
        if isinstance(error, IncompatibleState):
            raise
        raise IncompatibleState(f"{path} is not a {FORMAT}: {str(error)[:200]}") from error
    return state, waiting


def _content(path: str | PathLike[str]) -> dict[str, Any]:
    """The arrays of a file; none is compressed, so together they are no larger than the file."""
    with Archive(path) as archive:
        for name in archive.names:
            if not archive.header(name).stored:
                raise Damaged(f"array {name!r} is compressed, which no {FORMAT} is")
        return {name: archive.array(name) for name in archive.names}


def _rows_to_arrays(prefix: str, part: ViewRows) -> dict[str, Any]:
    arrays: dict[str, Any] = {f"{prefix}.present": part.present}
    if isinstance(part.rows, scipy.sparse.csr_array):
        for name in ("data", "indices", "indptr"):
            arrays[f"{prefix}.{name}"] = getattr(part.rows, name)
    else:
        arrays[f"{prefix}.rows"] = part.rows
    return arrays


def _chunk_from_arrays(state: State, prefix: str, size: Any, content: Mapping[str, Any]) -> Chunk:
    """Buffered rows, validated again."""
    given: dict[str, Any] = {}
    masks: dict[str, Any] = {}
    for number, view in enumerate(state.params.views):
        place = f"{prefix}.{number}"
        if f"{place}.present" not in content:
            continue
        present = content[f"{place}.present"]
        if present.dtype != np.bool_ or present.shape != (size,):
            raise IncompatibleState(f"{place}.present is not {size} truth values")
        rows: Any = content.get(f"{place}.rows")
        if rows is None:
            rows = _csr(place, int(present.sum()), view.dimension, content)
        if rows.shape != (int(present.sum()), view.dimension):
            raise IncompatibleState(f"{place}.rows has shape {rows.shape}")
        if rows.dtype not in (np.float32, np.float64):
            raise IncompatibleState(f"{place}.rows are of type {rows.dtype}")
        read_chunk([view], {view.name: rows}, {view.name: np.ones(len(present[present]), bool)})
        given[view.name], masks[view.name] = rows, present
    if not given:
        raise IncompatibleState(f"{prefix} has no rows")
    views = {name: ViewRows(rows, masks[name]) for name, rows in given.items()}
    refuse_empty_records(size, views)
    return Chunk(size, views)


def _csr(place: str, rows: int, columns: int, content: Mapping[str, Any]) -> Any:
    """Sparse rows; indices are checked, since SciPy's compiled code trusts them."""
    data, indices, indptr = (content[f"{place}.{name}"] for name in ("data", "indices", "indptr"))
    ends = np.asarray(indptr)
    if (
        any(array.ndim != 1 for array in (data, indices, ends))
        or any(array.dtype not in (np.int32, np.int64) for array in (indices, ends))
        or len(ends) != rows + 1
        or ends[0] != 0
        or ends[-1] != len(data)
        or len(data) != len(indices)
        or (np.diff(ends) < 0).any()
        or (len(indices) and (indices.min() < 0 or indices.max() >= columns))
    ):
        raise IncompatibleState(f"{place} is not sparse rows of {columns} features")
    return scipy.sparse.csr_array((data, indices, indptr), shape=(rows, columns))
