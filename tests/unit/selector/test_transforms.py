"""The three transforms, by hand and on random rows."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.selector.state import Range
from stream_fs.selector.transforms import fits_single, minmax, unit, widen
from tests.support.random_streams import SEEDS, dense


def test_minmax_by_hand() -> None:
    first = np.array([[0.0, -5.0, 7.0], [4.0, 5.0, 7.0]])
    seen = widen(None, first)
    np.testing.assert_array_equal(seen.lo, [0, -5, 7])
    np.testing.assert_array_equal(seen.hi, [4, 5, 7])
    # shares (0, 0, 0) and (1, 1, 0); a constant feature is 0
    expected = np.array([[0, 0, 0], [0.5**0.5, 0.5**0.5, 0]])
    np.testing.assert_allclose(dense(minmax(first, seen)), expected)
    second = np.array([[3.0, 15.0, 7.0]])
    seen = widen(seen, second)
    np.testing.assert_array_equal(seen.hi, [4, 15, 7])
    np.testing.assert_allclose(
        dense(minmax(second, seen)), np.array([[0.6, 0.8, 0.0]])
    )  # shares ¾ and 1


def test_sparse_ranges_start_at_zero() -> None:
    rows = scipy.sparse.csr_array(np.array([[0.0, 2.0, 3.0], [0.0, 4.0, 4.0]]))
    seen = widen(None, rows)
    np.testing.assert_array_equal(seen.lo, 0.0)
    np.testing.assert_array_equal(seen.hi, [0, 4, 4])
    scaled = minmax(rows, seen)
    assert scipy.sparse.issparse(scaled)
    np.testing.assert_allclose(
        dense(scaled), [[0, 2 / 13**0.5, 3 / 13**0.5], [0, 0.5**0.5, 0.5**0.5]]
    )


def test_sparse_rows_after_dense_ones_use_their_range() -> None:
    seen = widen(None, np.array([[-1.0, 1.0], [1.0, 3.0]]))
    rows = scipy.sparse.csr_array(np.array([[0.0, 3.0]]))
    seen = widen(seen, rows)
    np.testing.assert_array_equal(seen.lo, [-1.0, 0.0])
    np.testing.assert_allclose(dense(minmax(rows, seen)), [[1 / 5**0.5, 2 / 5**0.5]])


def test_unit_by_hand() -> None:
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [0.0, 2.0]])
    expected = np.array([[0.6, 0.8], [0, 0], [0, 1]])
    np.testing.assert_allclose(dense(unit(rows)), expected)
    np.testing.assert_allclose(dense(unit(scipy.sparse.csr_array(rows))), expected)
    assert rows[0, 0] == 3.0


@given(
    seed=SEEDS,
    size=st.integers(1, 12),
    d=st.integers(1, 8),
    dtype=st.sampled_from([np.float32, np.float64]),
    scale=st.integers(-30, 30),
    sparse=st.booleans(),
)
def test_rows_end_with_unit_length_or_zero(
    seed: int, size: int, d: int, dtype: Any, scale: int, sparse: bool
) -> None:
    rng = np.random.default_rng(seed)
    values = rng.random((size, d)) * (rng.random((size, d)) > 0.4) * 10.0**scale
    if not sparse:
        values -= 0.5 * 10.0**scale
    rows: Any = values.astype(dtype)
    given_rows = scipy.sparse.csr_array(rows) if sparse else rows.copy()
    seen = widen(None, given_rows)
    scaled = dense(minmax(given_rows, seen))
    np.testing.assert_array_equal(dense(given_rows), dense(rows))
    assert (scaled >= 0).all()
    lengths = np.linalg.norm(scaled, axis=1)
    assert ((abs(lengths - 1) < 1e-5) | (lengths == 0)).all()
    # Back to shares: the largest value of a feature that varies has the largest share.
    lo, hi = seen.lo.astype(np.longdouble), seen.hi.astype(np.longdouble)
    spread = np.where(hi > lo, hi - lo, 1)
    shares = np.where(hi > lo, (rows - lo) / spread, 0)
    norms = np.sqrt((shares**2).sum(axis=1, keepdims=True))
    expected = (shares / np.where(norms > 0, norms, 1)).astype(np.float64)
    np.testing.assert_allclose(scaled, expected, atol=1e-5)


@pytest.mark.parametrize("peak", [1e-20, 1.0, 1e20])
def test_single_precision_is_left_where_it_cannot_hold_the_products(peak: float) -> None:
    rows = np.full((2, 2), peak, np.float32)
    assert fits_single(rows) == (peak == 1.0)
    assert fits_single(scipy.sparse.csr_array(rows)) == (peak == 1.0)
    assert fits_single(np.ones((2, 2), np.float32), np.array([1.0, peak])) == (peak != 1e20)
    assert fits_single(np.zeros((2, 2), np.float32))


def test_a_range_never_narrows() -> None:
    seen = Range(np.array([-1.0]), np.array([1.0]))
    again = widen(seen, np.array([[0.5]]))
    assert (again.lo[0], again.hi[0]) == (-1.0, 1.0)
