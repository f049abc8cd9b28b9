"""A small stream of two views, each missing from a third of the rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse

from stream_fs.selector import Chunk, State, View, initial_state, params, read_chunk, update
from stream_fs.selector.parameters import Preset

PRESETS: tuple[Preset, ...] = get_args(Preset)
Form = Literal["dense", "csr"]
FORMS: dict[Form, Callable[[Any], Any]] = {"dense": np.asarray, "csr": scipy.sparse.csr_array}
SIZE, DIMENSION = 150, 40
"""Rows of a chunk, 100 of which have a view, and features of each view."""


def model_and_chunk(preset: Preset, form: Form, **parameters: Any) -> tuple[State, Chunk]:
    """A model after its first chunk, and the next chunk."""
    rng = np.random.default_rng(0)
    chosen = params([View("a", DIMENSION), View("b", DIMENSION)], 3, preset=preset, **parameters)
    masks = {"a": np.arange(SIZE) % 3 > 0, "b": np.arange(SIZE) % 3 < 2}
    chunks = [
        read_chunk(
            chosen.views,
            {name: FORMS[form](rng.random((SIZE, DIMENSION))) for name in masks},
            masks,
        )
        for _ in range(2)
    ]
    return update(initial_state(chosen), chunks[0])[0], chunks[1]
