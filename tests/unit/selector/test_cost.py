"""What an update may cost, counted: products with the chunk, dense copies, memory."""

from __future__ import annotations

import ctypes
import tracemalloc
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse

from stream_fs.selector import (
    Chunk,
    State,
    View,
    imputation,
    initial_state,
    library,
    params,
    read_chunk,
    update,
)
from stream_fs.selector.core import Core

PRESETS = ["default", "paper", "classical"]
SIZE, PRESENT, DIMENSION = 150, 100, 40
INT, REAL = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)
BLAS = ctypes.CFUNCTYPE(
    None, *2 * (ctypes.c_char_p,), *3 * (INT,), REAL, *2 * (REAL, INT), REAL, REAL, INT
)
"""op(A), op(B), m, n, k, α, A, its leading dimension, B, its own, β, C, its own."""
MEGABYTE = 1e6


def stream(preset: Any, form: Callable[[Any], Any], **parameters: Any) -> tuple[State, Chunk]:
    """A model that has seen a chunk, and the next one; a third of the rows are missing."""
    rng = np.random.default_rng(0)
    chosen = params([View("a", DIMENSION), View("b", DIMENSION)], 3, preset=preset, **parameters)
    masks = {"a": np.arange(SIZE) % 3 > 0, "b": np.arange(SIZE) % 3 < 2}
    chunks = [
        read_chunk(
            chosen.views,
            {name: form(rng.random((SIZE, DIMENSION))) for name in masks},
            masks,
        )
        for _ in range(2)
    ]
    return update(initial_state(chosen), chunks[0])[0], chunks[1]


class Products:
    """Counts products with a view's rows, on either core."""

    def __init__(self, patch: pytest.MonkeyPatch) -> None:
        self.count = 0
        for name in ("cross", "times"):
            patch.setattr(imputation, name, self._counted(getattr(imputation, name)))
        self._gemm = BLAS(library.gemm(np.dtype(np.float64)) or 0)
        self._counting = BLAS(self._multiply)  # lives as long as it is called
        address = ctypes.cast(self._counting, ctypes.c_void_p).value
        patch.setattr(library, "gemm", lambda _: address)

    def _counted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def call(*arguments: Any, **named: Any) -> Any:
            self.count += 1
            return original(*arguments, **named)

        return call

    def _multiply(self, *arguments: Any) -> None:
        m, n, k = (arguments[place][0] for place in (2, 3, 4))
        self.count += DIMENSION in (m, k) and PRESENT in (n, k)
        self._gemm(*arguments)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_an_iteration_multiplies_twice_with_every_view(
    core: Core, preset: Any, form: Callable[[Any], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    products = Products(monkeypatch)
    took = []
    for iterations in (12, 22):
        state, chunk = stream(
            preset, form, min_iterations=iterations, max_iterations=iterations, tolerance=0.0
        )
        products.count = 0
        _, report = update(state, chunk)
        assert report.iterations == iterations
        took.append(products.count)
    # Of sparse rows the compiled core makes its products itself, within the call for a turn.
    within = core == "compiled" and form is scipy.sparse.csr_array
    assert took[1] - took[0] == (0 if within else 2 * 2 * 10)


@pytest.mark.parametrize("preset", PRESETS)
def test_sparse_rows_stay_sparse(preset: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    state, chunk = stream(preset, scipy.sparse.csr_array)
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
