"""A validated chunk of instances, the input of `update`.

Every view holds its *present* rows only, in the order of the stream, beside a mask over all rows
of the chunk. `read_chunk` has validated every value.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
import scipy.sparse

from stream_fs.errors import InvalidChunk
from stream_fs.selector.arrays import Mask, Rows, Working
from stream_fs.selector.parameters import View

LARGEST = 1e50
"""Largest magnitude where values are used as they are (transform `none`): products of several of
them must stay finite."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewRows:
    """One view's part of a chunk: `rows` (n × d), the present rows; `present` (N,)."""

    rows: Rows
    present: Mask


@dataclass(frozen=True, slots=True, eq=False)
class Chunk:
    """N instances. A view that is not in `views` is missing from the whole chunk."""

    size: int
    views: Mapping[str, ViewRows]


def read_chunk(
    declared: Sequence[View],
    inputs: Mapping[str, Any],
    present: Mapping[str, Any] | None = None,
) -> Chunk:
    """Validate the user's matrices, and convert them to a chunk.

    `inputs` maps views to N × d matrices: dense (float32 is kept, everything else becomes
    float64) or SciPy sparse. An instance lacks a view where `present` is False or, for a view
    that `present` does not name, where the row is all NaN. A view that is absent or None is missing
    from the whole chunk. Raises `InvalidChunk` with view, row and feature.
    """
    masks = {} if present is None else dict(present)
    _refuse_unknown(declared, inputs)
    _refuse_unknown(declared, masks)
    views: dict[str, ViewRows] = {}
    size: int | None = None
    for view in declared:
        if inputs.get(view.name) is None:
            if np.any(masks.get(view.name, False)):
                raise InvalidChunk("marked as present, but there are no rows", view=view.name)
            continue
        rows = _matrix(view, inputs[view.name])
        if size is None:
            size = int(rows.shape[0])
        elif rows.shape[0] != size:
            raise InvalidChunk(
                f"{rows.shape[0]} rows where the other views have {size}", view=view.name
            )
        part = _present_rows(view, rows, masks.get(view.name))
        if part.present.any():
            views[view.name] = part
    if not size:
        raise InvalidChunk("there are no rows: give at least one view with at least one row")
    refuse_empty_records(size, views)
    return Chunk(size, views)


def concatenate(chunks: Sequence[Chunk]) -> Chunk:
    """One chunk with the rows of several, in order."""
    if len(chunks) == 1:
        return chunks[0]
    views: dict[str, ViewRows] = {}
    for name in dict.fromkeys(name for chunk in chunks for name in chunk.views):
        masks = [
            chunk.views[name].present if name in chunk.views else np.zeros(chunk.size, bool)
            for chunk in chunks
        ]
        parts: list[Any] = [chunk.views[name].rows for chunk in chunks if name in chunk.views]
        rows: Rows
        if all(isinstance(part, scipy.sparse.csr_array) for part in parts) or few_stored(parts):
            rows = stacked(parts)
        else:
            rows = np.concatenate(
                [
                    part.toarray() if isinstance(part, scipy.sparse.csr_array) else part
                    for part in parts
                ]
            )
        views[name] = ViewRows(rows, np.concatenate(masks))
    return Chunk(sum(chunk.size for chunk in chunks), views)


def few_stored(parts: Sequence[Rows]) -> bool:
    """Whether less than an eighth of the values of several matrices are stored.

    CSR then takes less memory and time than a dense matrix. Otherwise a dense matrix has at most
    eight times as many values as were given.
    """
    stored = sum(
        part.nnz if isinstance(part, scipy.sparse.csr_array) else part.size for part in parts
    )
    return 8 * stored < sum(math.prod(part.shape) for part in parts)


def stacked(parts: Sequence[Rows]) -> Rows:
    """The rows of several matrices as CSR; of dense rows every value is stored, zeros too."""
    matrices: list[Any] = [
        part if isinstance(part, scipy.sparse.csr_array) else _every_value(part) for part in parts
    ]
    return scipy.sparse.csr_array(scipy.sparse.vstack(matrices, format="csr"))


def _every_value(rows: Working) -> Rows:
    n, d = rows.shape
    columns = np.tile(np.arange(d, dtype=np.int32), n)
    return scipy.sparse.csr_array((rows.ravel(), columns, np.arange(n + 1) * d), shape=(n, d))


def detached(chunk: Chunk) -> Chunk:
    """The chunk with copies of its rows, so that the caller can reuse the memory."""
    views = {
        name: ViewRows(part.rows.copy(), part.present.copy()) for name, part in chunk.views.items()
    }
    return Chunk(chunk.size, views)


def _refuse_unknown(declared: Sequence[View], given: Mapping[str, Any]) -> None:
    names = [view.name for view in declared]
    for name in given:
        if name not in names:
            raise InvalidChunk(f"this view is not declared; declared are {names}", view=str(name))


def _matrix(view: View, given: Any) -> Rows:
    """The rows as float32 or float64, dense or CSR, with the right number of features."""
    matrix = _csr(view, given) if scipy.sparse.issparse(given) else _dense(view, given)
    if matrix.ndim != 2:
        raise InvalidChunk(
            f"expected rows × features, got {matrix.ndim} dimension(s)", view=view.name
        )
    if matrix.shape[1] != view.dimension:
        raise InvalidChunk(
            f"{matrix.shape[1]} features where {view.dimension} are declared", view=view.name
        )
    return matrix


def _csr(view: View, given: Any) -> Rows:
    matrix: Any = scipy.sparse.csr_array(given, dtype=_precision(view, given.dtype))
    if not matrix.has_canonical_format:
        matrix = matrix.copy()
        matrix.sum_duplicates()
    return cast("Rows", matrix)


def _dense(view: View, given: Any) -> Rows:
    try:
        array = np.asarray(given)
        if array.dtype.kind == "O":
            array = array.astype(np.float64)
    except (TypeError, ValueError) as error:
        raise InvalidChunk(f"not a matrix of numbers: {error}", view=view.name) from None
    return array.astype(_precision(view, array.dtype), copy=False)


def _precision(view: View, dtype: np.dtype[Any]) -> Any:
    """float32 stays; every other kind of number becomes float64."""
    if dtype.kind not in "fiub":
        raise InvalidChunk(f"values of type {dtype} are not numbers", view=view.name)
    return np.float32 if dtype == np.float32 else np.float64


def _present_rows(view: View, matrix: Rows, given: Any) -> ViewRows:
    """Drop the missing rows, and refuse invalid present ones."""
    size = int(matrix.shape[0])
    if given is not None:
        present = np.asarray(given)
        if present.dtype != np.bool_ or present.shape != (size,):
            raise InvalidChunk(
                f"`present` must be {size} truth values, got {present.dtype} "
                f"of shape {present.shape}",
                view=view.name,
            )
    elif isinstance(matrix, scipy.sparse.csr_array) or matrix.shape[0] == 0:
        present = np.ones(size, bool)
    else:
        present = _not_all_nan(matrix)
    rows = matrix if present.all() else matrix[np.flatnonzero(present)]
    _refuse_unusable(view, rows, present)
    return ViewRows(rows, present)


def _not_all_nan(matrix: Any) -> Mask:
    """Rows that are not all NaN; only rows that start with NaN are read completely."""
    present = np.ones(matrix.shape[0], bool)
    suspects = np.flatnonzero(np.isnan(matrix[:, 0]))
    present[suspects] = ~np.isnan(matrix[suspects]).all(axis=1)
    return present


def _refuse_unusable(view: View, rows: Rows, present: Mask) -> None:
    sparse = isinstance(rows, scipy.sparse.csr_array)
    values: Any = rows.data if sparse else rows
    if values.size == 0:
        return
    least, largest = float(values.min()), float(values.max())
    if not (np.isfinite(least) and np.isfinite(largest)):
        bad = ~np.isfinite(values)
        row, feature, value = _place(rows, present, bad)
        hint = "; mark rows that lack the view in `present`" if sparse else ""
        raise InvalidChunk(
            f"{value} inside a present row{hint}", view=view.name, row=row, feature=feature
        )
    if least < 0 and (sparse or view.transform != "minmax"):
        row, feature, value = _place(rows, present, values < 0)
        why = "sparse rows" if sparse else f"transform {view.transform!r}"
        raise InvalidChunk(
            f"negative value {value!r}, which {why} does not allow",
            view=view.name,
            row=row,
            feature=feature,
        )
    if view.transform == "none" and largest > LARGEST:
        row, feature, value = _place(rows, present, values > LARGEST)
        raise InvalidChunk(
            f"{value!r} is above {LARGEST:g}, the largest value that transform 'none' takes",
            view=view.name,
            row=row,
            feature=feature,
        )


def _place(rows: Rows, present: Mask, bad: Any) -> tuple[int, int, float]:
    """Row within the chunk, feature and value of the first entry that is marked bad."""
    if isinstance(rows, scipy.sparse.csr_array):
        entry = int(np.flatnonzero(bad)[0])
        row = int(np.searchsorted(rows.indptr, entry, side="right")) - 1
        feature, value = int(rows.indices[entry]), float(rows.data[entry])
    else:
        row, feature = (int(index[0]) for index in np.nonzero(bad))
        value = float(rows[row, feature])
    return int(np.flatnonzero(present)[row]), feature, value


def refuse_empty_records(size: int, views: Mapping[str, ViewRows]) -> None:
    """Raise `InvalidChunk` where a row has no view at all."""
    missing = np.ones(size, bool)
    for part in views.values():
        missing &= ~part.present
    if missing.any():
        raise InvalidChunk("every view is missing", row=int(np.flatnonzero(missing)[0]))


def presence(chunk: Chunk, name: str) -> Mask:
    """Which rows of the chunk have the view; (N,)."""
    part = chunk.views.get(name)
    return np.zeros(chunk.size, bool) if part is None else part.present


def missing_share(chunk: Chunk, name: str) -> float:
    """Share of the chunk's rows that lack the view."""
    return 1.0 - float(np.count_nonzero(presence(chunk, name))) / chunk.size
