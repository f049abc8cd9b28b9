"""Random streams of chunks: several views with gaps, in either precision, dense or sparse."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy.sparse
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_fs.selector import Chunk, Params, Report, State, initial_state, read_chunk, update
from stream_fs.selector.arrays import Shifted
from stream_fs.selector.state import flatten

SEEDS = st.integers(0, 2**32 - 1)


@dataclass(frozen=True)
class Layout:
    """Shape of a random stream; everything else about it follows from `seed`."""

    dims: tuple[int, ...]
    clusters: int
    sizes: tuple[int, ...]
    missing: float
    dtype: Any
    sparse: bool
    seed: int

    @property
    def names(self) -> list[str]:
        return [f"view {v}" for v in range(len(self.dims))]


@st.composite
def layouts(
    draw: st.DrawFn,
    *,
    views: int = 3,
    chunks: int = 3,
    first_rows: int = 8,
    most_rows: int = 30,
    missing: tuple[float, ...] = (0.0, 0.3, 0.7),
    dims: tuple[int, int] = (1, 9),
    sparse: bool | None = None,
    dtype: Any = None,
) -> Layout:
    clusters = draw(st.integers(1, 4))
    return Layout(
        dims=tuple(draw(st.lists(st.integers(*dims), min_size=1, max_size=views))),
        clusters=clusters,
        sizes=(
            draw(st.integers(first_rows, most_rows)),
            *draw(st.lists(st.integers(1, most_rows), max_size=chunks - 1)),
        ),
        missing=draw(st.sampled_from(missing)),
        dtype=draw(st.sampled_from([np.float32, np.float64])) if dtype is None else dtype,
        sparse=draw(st.booleans()) if sparse is None else sparse,
        seed=draw(SEEDS),
    )


def presence(
    rng: np.random.Generator, views: int, size: int, missing: float
) -> list[NDArray[np.bool_]]:
    """Which rows have which view; every row has at least one."""
    masks = rng.random((views, size)) >= missing
    masks[rng.integers(views, size=size), np.arange(size)] = True
    return list(masks)


def random_stream(layout: Layout) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """Inputs and presence of each chunk, as `read_chunk` takes them; values are in [0, 1).

    A quarter of the values is zero. Missing rows hold NaN where the matrix is dense.
    """
    rng = np.random.default_rng(layout.seed)
    for size in layout.sizes:
        masks = presence(rng, len(layout.dims), size, layout.missing)
        inputs: dict[str, Any] = {}
        for name, d, mask in zip(layout.names, layout.dims, masks, strict=True):
            values = rng.random((size, d)) * (rng.random((size, d)) > 1 / 4)
            if layout.sparse:
                values[~mask] = 0.0
                inputs[name] = scipy.sparse.csr_array(values.astype(layout.dtype))
            else:
                values[~mask] = np.nan
                inputs[name] = values.astype(layout.dtype)
        yield inputs, dict(zip(layout.names, masks, strict=True))


def random_chunks(layout: Layout, params: Params) -> Iterator[Chunk]:
    for inputs, present in random_stream(layout):
        yield read_chunk(params.views, inputs, present)


def run(params: Params, chunks: Iterable[Chunk]) -> tuple[State, list[Report]]:
    """The state after the chunks, and each one's report."""
    state = initial_state(params)
    reports = []
    for chunk in chunks:
        state, report = update(state, chunk)
        reports.append(report)
    return state, reports


def converted(chunks: Iterable[Chunk], convert: Callable[[Any], Any]) -> list[Chunk]:
    """The same chunks with every view's rows in another form."""
    return [
        replace(
            chunk,
            views={
                name: replace(part, rows=convert(part.rows)) for name, part in chunk.views.items()
            },
        )
        for chunk in chunks
    ]


def dense(rows: Any) -> NDArray[np.float64]:
    if isinstance(rows, Shifted):
        return dense(rows.sparse) + np.outer(rows.share, rows.offset)
    return np.asarray(rows.toarray() if hasattr(rows, "toarray") else rows, np.float64)


def state_bytes(state: State) -> bytes:
    """Everything that a checkpoint would hold."""
    description, arrays = flatten(state)
    content = b"".join(name.encode() + array.tobytes() for name, array in sorted(arrays.items()))
    return json.dumps(description, sort_keys=True).encode() + content
