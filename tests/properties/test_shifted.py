"""Sparse rows of a min-max view in which values have been negative: the same as dense ones."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.selector import (
    Chunk,
    MultiViewSelector,
    View,
    initial_state,
    params,
    update,
)
from stream_fs.selector.arrays import (
    Shifted,
    column_square_sums,
    column_sums,
    cross,
    gram,
    row_square_sums,
    times,
)
from stream_fs.selector.chunk import ViewRows, concatenate, stacked
from stream_fs.selector.state import Range, flatten
from stream_fs.selector.transforms import minmax, widen
from tests.support.random_streams import SEEDS, converted, dense

CLOSE = {np.float32: 2e-6, np.float64: 1e-13}


def mixed(rng: np.random.Generator, size: int, d: int, complete: int, dtype: Any) -> Any:
    """CSR: rows of few non-negative values, and among them some with every value, of any sign."""
    few = rng.random((size - complete, d)) * (rng.random((size - complete, d)) < 0.3)
    rows: list[Any] = [
        scipy.sparse.csr_array(few.astype(dtype)),
        rng.normal(size=(complete, d)).astype(dtype),
    ]
    return stacked(rows)[rng.permutation(size)]


@st.composite
def scaled_rows(draw: st.DrawFn) -> tuple[Any, Range]:
    """Rows of a view, with a range that was negative in some features, on any scale."""
    rng = np.random.default_rng(draw(SEEDS))
    d, size = draw(st.integers(2, 12)), draw(st.integers(1, 12))
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    rows = mixed(rng, size, d, draw(st.integers(0, size)), dtype)
    scales = 10.0 ** (rng.integers(-30, 30, d) if draw(st.booleans()) else np.zeros(d))
    rows.data *= scales[rows.indices].astype(dtype)
    lo = rng.normal(size=d) * (rng.random(d) < 0.5)
    lo[rng.integers(d)] = -draw(st.sampled_from([1e-200, 1e-9, 1.0, 1e12]))
    return rows, widen(Range(lo * scales, np.zeros(d)), rows)


@given(scaled_rows())
def test_sparse_rows_are_scaled_as_dense_ones(given_rows: tuple[Any, Range]) -> None:
    rows, seen = given_rows
    found, close = minmax(rows, seen), CLOSE[rows.dtype.type]
    assert isinstance(found, Shifted)
    for part in (found.sparse.data, found.share, found.offset):
        assert part.dtype == rows.dtype
        assert (part >= 0).all()
    np.testing.assert_allclose(dense(found), dense(minmax(dense(rows), seen)), atol=close)


@given(scaled_rows(), SEEDS)
def test_every_product_is_that_of_the_dense_rows(given_rows: tuple[Any, Range], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows: Any = minmax(*given_rows)
    plain, close = dense(rows), CLOSE[rows.dtype.type]
    n, d = plain.shape
    assert rows.shape == plain.shape
    U, V = rng.random((n, 3)).astype(rows.dtype), rng.random((d, 3)).astype(rows.dtype)
    out = np.empty((n, 3), rows.dtype)
    found = {
        "gram": (gram(rows), plain @ plain.T),
        "cross": (cross(rows, U), plain.T @ U),
        "times": (times(rows, V), plain @ V),
        "times, in place": (times(rows, V, out=out), plain @ V),
        "one vector": (times(rows, V[:, 0]), plain @ V[:, 0]),
        "column sums": (column_sums(rows), plain.sum(axis=0)),
        "column squares": (column_square_sums(rows), (plain**2).sum(axis=0)),
        "row squares": (row_square_sums(rows), (plain**2).sum(axis=1)),
    }
    for name, (own, expected) in found.items():
        np.testing.assert_allclose(own, expected, atol=10 * n * close, err_msg=name)
    assert rows.dtype == found["cross"][0].dtype == found["times"][0].dtype
    np.testing.assert_array_equal(out, found["times"][0])


@pytest.mark.parametrize("preset", ["default", "paper"])
@pytest.mark.parametrize("missing", [False, True])
def test_a_model_is_that_of_the_dense_rows(preset: Any, missing: bool) -> None:
    """Sparse chunks, one with dense records among them that are negative, and sparse ones again."""
    rng = np.random.default_rng(7)
    limits = {"min_iterations": 12, "max_iterations": 12}
    chosen = params([View("a", 30, "minmax"), View("b", 4, "minmax")], 3, preset=preset, **limits)
    present = rng.random(40) > 0.4 if missing else np.ones(40, bool)
    chunks = []
    for complete in (0, 3, 0, 0):
        rows = mixed(rng, int(present.sum()), 30, complete, np.float64)
        others = ViewRows(rng.random((40, 4)), np.ones(40, bool))
        chunks.append(Chunk(40, {"a": ViewRows(rows, present), "b": others}))
    sparse = plain = initial_state(chosen)
    for chunk, same in zip(chunks, converted(chunks, dense), strict=True):
        sparse, report = update(sparse, chunk)
        plain, expected = update(plain, same)
        np.testing.assert_allclose(report.objective, expected.objective, rtol=1e-8)
    assert (flatten(sparse)[1]["0.range.lo"] < 0).any()
    for name, array in flatten(plain)[1].items():
        scale = max(float(np.abs(array).max()), 1e-30)
        own = flatten(sparse)[1][name]
        np.testing.assert_allclose(own / scale, array / scale, atol=1e-8, err_msg=name)


@pytest.mark.parametrize("among", [False, True])
def test_no_chunk_takes_memory_of_rows_times_features(among: bool) -> None:
    """After a chunk of one dense record, which was negative; the same with others among it."""
    rng = np.random.default_rng(1)
    n, d = 300, 20_000
    chosen = params([View("a", d, "minmax")], 2, sketch=0, max_iterations=10)
    random: Any = scipy.sparse.random_array((n, d), density=1e-3, rng=rng, format="csr")
    sparse = Chunk(n, {"a": ViewRows(random, np.ones(n, bool))})
    record = Chunk(1, {"a": ViewRows(rng.normal(size=(1, d)), np.ones(1, bool))})
    state, _ = update(initial_state(chosen), sparse)
    state, _ = update(state, record)
    if among:
        sparse = concatenate([record, sparse, record])
    tracemalloc.start()
    try:
        update(state, sparse)
        assert tracemalloc.get_traced_memory()[1] < n * d * 8 / 4
    finally:
        tracemalloc.stop()


def test_rows_buffered_for_the_first_chunk_stay_sparse() -> None:
    """One dense matrix with few rows among sparse ones."""
    rng = np.random.default_rng(2)
    selector = MultiViewSelector([View("a", 40)], 2, max_iterations=10)
    other = MultiViewSelector([View("a", 40)], 2, max_iterations=10)
    for size, form in ((30, scipy.sparse.csr_array), (2, np.asarray), (30, scipy.sparse.csr_array)):
        rows = rng.random((size, 40)) * (rng.random((size, 40)) < 0.03)
        rows -= rng.random((size, 40)) * (form is np.asarray)
        selector.partial_fit({"a": form(rows)})
        other.partial_fit({"a": rows})
    np.testing.assert_allclose(selector.scores()["a"], other.scores()["a"], atol=1e-8)
