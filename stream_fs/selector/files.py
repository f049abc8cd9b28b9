"""A selector in a file: a NumPy archive with a JSON description, read without pickle."""

from __future__ import annotations

import json
import os
import zipfile
from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.errors import IncompatibleState
from stream_fs.selector.chunk import Chunk, ViewRows
from stream_fs.selector.state import State, flatten, unflatten

FORMAT = "stream-fs selector"
VERSION = 1


def write_file(path: str | PathLike[str], state: State, waiting: Sequence[Chunk]) -> None:
    """Write state and rows kept back; the file appears whole or not at all."""
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
    """The inverse of `write_file`; `IncompatibleState` for any other file."""
    try:
        with Path(path).open("rb") as file, np.load(file, allow_pickle=False) as archive:
            content = {name: archive[name] for name in archive.files}
        header = json.loads(content.pop("header").tobytes())
        if header["format"] != FORMAT:
            raise IncompatibleState(f"{path} is not a {FORMAT}")
        if header["version"] != VERSION:
            raise IncompatibleState(
                f"{path} has format version {header['version']}, this release reads {VERSION}"
            )
        state = unflatten(
            header["state"],
            {name.removeprefix("state."): array for name, array in content.items()},
        )
        waiting = tuple(
            _chunk_from_arrays(state, f"waiting.{number}", size, content)
            for number, size in enumerate(header["waiting"])
        )
    except (KeyError, TypeError, ValueError, EOFError, zipfile.BadZipFile) as error:
        if isinstance(error, IncompatibleState):
            raise
        raise IncompatibleState(f"{path} is not a {FORMAT}: {error}") from error
    return state, waiting


def _rows_to_arrays(prefix: str, part: ViewRows) -> dict[str, Any]:
    arrays: dict[str, Any] = {f"{prefix}.present": part.present}
    if isinstance(part.rows, scipy.sparse.csr_array):
        for name in ("data", "indices", "indptr"):
            arrays[f"{prefix}.{name}"] = getattr(part.rows, name)
    else:
        arrays[f"{prefix}.rows"] = part.rows
    return arrays


def _chunk_from_arrays(state: State, prefix: str, size: int, content: Mapping[str, Any]) -> Chunk:
    views: dict[str, ViewRows] = {}
    for number, view in enumerate(state.params.views):
        place = f"{prefix}.{number}"
        if f"{place}.present" not in content:
            continue
        present = content[f"{place}.present"]
        rows: Any = content.get(f"{place}.rows")
        if rows is None:
            parts = tuple(content[f"{place}.{name}"] for name in ("data", "indices", "indptr"))
            rows = scipy.sparse.csr_array(parts, shape=(int(present.sum()), view.dimension))
        if present.dtype != np.bool_ or present.shape != (size,):
            raise IncompatibleState(f"{place}.present is not {size} truth values")
        if rows.shape != (int(present.sum()), view.dimension):
            raise IncompatibleState(f"{place}.rows has shape {rows.shape}")
        views[view.name] = ViewRows(rows, present)
    return Chunk(size, views)
