"""Models to take snapshots of."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.selector.chunk import Chunk, read_chunk
from stream_fs.selector.parameters import Params, Preset, View, params
from stream_fs.selector.state import State, flatten, initial_state
from stream_fs.selector.update import update

VIEWS = (View("dense", 12), View("counts", 30), View("later", 5))


def declared(preset: Preset = "default", **overrides: Any) -> Params:
    return params(VIEWS, 3, preset=preset, **overrides)


def chunk(declared: Params, number: int, *, sparse: bool) -> Chunk:
    """Rows of two views, some of them missing; `later` is never there."""
    source = np.random.default_rng(number)
    counts = source.poisson(0.5, (70, 30)).astype(np.float64)
    present = source.random(70) < 0.8
    return read_chunk(
        declared.views,
        {
            "dense": source.random((70, 12)),
            "counts": scipy.sparse.csr_array(counts) if sparse else counts,
        },
        {"dense": present},
    )


def trained(declared: Params, chunks: int = 2, *, sparse: bool = False) -> State:
    state = initial_state(declared, "measurements/3")
    for number in range(chunks):
        state, _ = update(state, chunk(declared, number, sparse=sparse))
    return state


def content(state: State) -> tuple[dict[str, Any], dict[str, tuple[tuple[int, ...], bytes]]]:
    """All of a state, to compare to the last bit."""
    description, arrays = flatten(state)
    return description, {name: (array.shape, array.tobytes()) for name, array in arrays.items()}
