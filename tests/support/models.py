"""Small models, for snapshots."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse

from stream_fs.selector.chunk import Chunk, read_chunk
from stream_fs.selector.parameters import Params, Preset, View, params
from stream_fs.selector.state import State, flatten, initial_state
from stream_fs.selector.update import update

VIEWS = (View("dense", 12), View("counts", 30), View("later", 5))


def model_params(preset: Preset = "default", **overrides: Any) -> Params:
    return params(VIEWS, 3, preset=preset, **overrides)


def sample_chunk(declared: Params, number: int, *, sparse: bool) -> Chunk:
    """Rows of two views, some of them missing; `later` is always missing."""
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


def trained_state(declared: Params, chunks: int = 2, *, sparse: bool = False) -> State:
    state = initial_state(declared, "measurements/3")
    for number in range(chunks):
        state, _ = update(state, sample_chunk(declared, number, sparse=sparse))
    return state


def state_content(state: State) -> tuple[dict[str, Any], dict[str, tuple[tuple[int, ...], bytes]]]:
    """The content of a state, for bitwise comparison."""
    description, arrays = flatten(state)
    return description, {name: (array.shape, array.tobytes()) for name, array in arrays.items()}
