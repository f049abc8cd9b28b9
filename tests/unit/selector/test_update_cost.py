"""What an update may cost, counted: products with the chunk, dense copies, memory."""

from __future__ import annotations

import json
import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from stream_fs.selector import Chunk, State, View, initial_state, params, read_chunk, update
from stream_fs.selector.kernels.dispatch import Core
from tests.support.small_streams import DIMENSION, FORMS, PRESETS, model_and_chunk

ROOT = Path(__file__).parents[3]


def test_an_iteration_multiplies_twice_with_every_view(core: Core) -> None:
    program = (sys.executable, "-m", "tests.support.count_products")
    ended = subprocess.run(program, cwd=ROOT, capture_output=True, text=True, check=True)
    # The compiled core multiplies sparse rows itself, without BLAS.
    within = {"csr"} if core == "compiled" else set()
    assert json.loads(ended.stdout) == {
        f"{preset} {form}": 0 if form in within else 2 * 2 * 10
        for preset in PRESETS
        for form in FORMS
    }


@pytest.mark.parametrize("preset", PRESETS)
def test_sparse_rows_stay_sparse(preset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    state, chunk = model_and_chunk(preset, "csr")
    original, made = scipy.sparse.csr_array.toarray, []

    def toarray(self: Any, *arguments: Any, **named: Any) -> Any:
        made.append(self.shape)
        return original(self, *arguments, **named)

    monkeypatch.setattr(scipy.sparse.csr_array, "toarray", toarray)
    update(state, chunk)
    # Products of the rows with each other, and nothing that has features.
    assert made
    assert not [shape for shape in made if DIMENSION in shape]


def peak(state: State, chunk: Chunk) -> float:
    """Bytes that an update has at most, beyond what there was before."""
    update(state, chunk)  # whatever is made once
    tracemalloc.start()
    try:
        update(state, chunk)
        return float(tracemalloc.get_traced_memory()[1])
    finally:
        tracemalloc.stop()


def test_many_features_take_no_dense_rows() -> None:
    rng = np.random.default_rng(1)
    n, d = 300, 20_000
    chosen = params([View("a", d, "none")], 2, sketch=0, max_iterations=10)
    rows = scipy.sparse.random_array((n, d), density=1e-3, rng=rng, format="csr")
    state, _ = update(initial_state(chosen), read_chunk(chosen.views, {"a": rows}))
    assert peak(state, read_chunk(chosen.views, {"a": rows})) < n * d * 8 / 4


def test_many_rows_take_a_product_for_each_view_and_one_more() -> None:
    rng = np.random.default_rng(2)
    n, views, clusters = 1200, 3, 4
    chosen = params([View(name, 20) for name in "abc"], clusters, max_iterations=10)
    rows = {name: rng.random((n, 20)) for name in "abc"}
    state, _ = update(initial_state(chosen), read_chunk(chosen.views, rows))
    square, narrow = n * n * 8, views * n * clusters * 8
    assert peak(state, read_chunk(chosen.views, rows)) < (views + 1) * square + 50 * narrow
