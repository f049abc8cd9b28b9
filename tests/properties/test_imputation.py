"""Imputation without imputed rows equals imputation with them; dense rows equal sparse ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_fs.selector import View, params
from stream_fs.selector.arrays import gram
from stream_fs.selector.imputation import Imputed, energy, impute, product, transposed_product
from stream_fs.selector.parameters import Transform, Weights
from stream_fs.selector.state import State, flatten
from tests.reference.algorithm1 import impute as built
from tests.support.planted_streams import Planted, planted_chunks
from tests.support.random_streams import SEEDS, Layout, converted, layouts, random_chunks, run

TOLERANCE = {np.float64: 1e-12, np.float32: 1e-5}


@dataclass(frozen=True)
class Gaps:
    """A view's rows with gaps, implied (`view`) and built (`X` (N×d), `fit` (N,) = W̃)."""

    view: Imputed
    X: NDArray[np.float64]
    fit: NDArray[np.float64]
    tolerance: float
    rng: np.random.Generator

    def close(self, implied: Any, explicit: Any) -> None:
        scale = float(np.max(np.abs(explicit), initial=1e-100))
        implied = np.asarray(implied, np.float64)
        np.testing.assert_allclose(implied / scale, explicit / scale, atol=self.tolerance)


@st.composite
def gaps(draw: st.DrawFn) -> Gaps:
    rng = np.random.default_rng(draw(SEEDS))
    size, d = draw(st.integers(1, 25)), draw(st.integers(1, 10))
    kind = draw(st.sampled_from(["none", "all", "start", "some"]))
    present = {
        "none": np.ones(size, bool),
        "all": np.zeros(size, bool),
        "start": np.arange(size) >= draw(st.integers(0, size)),
        "some": rng.random(size) > 0.5,
    }[kind]
    dtype = draw(st.sampled_from([np.float32, np.float64]))
    weights: Weights = draw(st.sampled_from(["quality", "binary"]))
    # Decay makes these counts fractions, here none so small that single precision has no place for
    # their sums.
    j = draw(st.just(0.0) | st.floats(1e-6, 50))
    n = draw(st.sampled_from([0.0, 0.4, 1.0])) * j
    values = rng.random((size, d)) * (rng.random((size, d)) > 0.4)
    values = values.astype(dtype).astype(np.float64)
    carried = n * rng.random(d)
    rows = values[present].astype(dtype)
    sparse = draw(st.booleans())
    view = impute(scipy.sparse.csr_array(rows) if sparse else rows, present, carried, n, j, weights)
    columns, w = built(values.T * present, present, carried, n, j)
    fit = w**2 if weights == "quality" else present.astype(np.float64)
    np.testing.assert_allclose(view.quality, w**2)
    np.testing.assert_allclose(view.fit, fit)
    return Gaps(view, columns.T, fit, TOLERANCE[dtype], rng)


@given(case=gaps(), clusters=st.integers(1, 5))
def test_the_transposed_product_is_that_of_built_rows(case: Gaps, clusters: int) -> None:
    U = case.rng.random((len(case.X), clusters))
    case.close(transposed_product(case.view, U), case.X.T @ (case.fit[:, None] * U))


@given(case=gaps(), clusters=st.integers(1, 5))
def test_the_product_is_that_of_built_rows(case: Gaps, clusters: int) -> None:
    V = case.rng.random((case.X.shape[1], clusters)).astype(case.view.rows.dtype)
    case.close(product(case.view, V), case.fit[:, None] * (case.X @ V.astype(np.float64)))


@given(case=gaps(), shifted=st.booleans())
def test_the_energy_is_that_of_built_rows(case: Gaps, shifted: bool) -> None:
    rows = case.view.rows
    dense: Any = rows.toarray() if isinstance(rows, scipy.sparse.csr_array) else rows
    origin = shifted * dense.sum(axis=0) / dense.dtype.type(len(dense) + 1)
    expected = (case.fit[:, None] * case.X**2).sum()
    case.close(energy(case.view, gram(dense - origin), origin), expected)


@given(seed=SEEDS, size=st.integers(1, 20), d=st.integers(1, 8))
def test_where_nothing_is_missing_imputation_does_nothing(seed: int, size: int, d: int) -> None:
    rng = np.random.default_rng(seed)
    X, U, V = rng.random((size, d)), rng.random((size, 3)), rng.random((d, 3))
    view = impute(X, np.ones(size, bool), 5 * rng.random(d), 5.0, 9.0, "quality")
    np.testing.assert_array_equal(view.quality, 1.0)
    np.testing.assert_array_equal(view.fit, 1.0)
    np.testing.assert_allclose(transposed_product(view, U), X.T @ U, rtol=1e-12)
    np.testing.assert_allclose(product(view, V), X @ V, rtol=1e-12)
    assert energy(view, gram(X), np.zeros(d)) == pytest.approx((X**2).sum(), rel=1e-12)


def close_states(one: State, other: State, tolerance: float) -> None:
    """Equal up to rounding, relative to the largest entry of each array."""
    first, second = flatten(one)[1], flatten(other)[1]
    assert first.keys() == second.keys()
    for name, array in first.items():
        scale = max(float(np.max(np.abs(array))), 1e-12)
        np.testing.assert_allclose(
            second[name] / scale, array / scale, atol=tolerance, err_msg=name
        )


@pytest.mark.parametrize("preset", ["default", "paper", "classical"])
@pytest.mark.parametrize("transform", ["minmax", "unit", "none"])
@settings(max_examples=8)
@given(
    layout=layouts(sparse=False, dtype=np.float64, dims=(8, 12), first_rows=24, missing=(0.0, 0.3))
)
def test_dense_rows_equal_sparse_rows(preset: Any, transform: Transform, layout: Layout) -> None:
    """Sparse ranges start at zero, so every feature is made to have one from the beginning.

    Enough features that no two rows are equally far from a third, no row of zeros, which is equally
    far from all of unit length, and enough rows that the first clusters are not the patterns of
    presence: in each case rounding would decide.
    """
    views = [View(name, d, transform) for name, d in zip(layout.names, layout.dims, strict=True)]
    settled = {"min_iterations": 12, "max_iterations": 12}  # no decision that rounding could turn
    chosen = params(views, layout.clusters, preset=preset, **settled)
    full = list(random_chunks(layout, chosen))
    for part in full[0].views.values():
        rows: Any = part.rows
        features = np.arange(rows.shape[1])
        rows[features % rows.shape[0], features] = 0.0
        empty = np.flatnonzero(~rows.any(axis=1))
        rows[empty, (empty + 1) % rows.shape[1]] = 1.0
    sparse = converted(full, scipy.sparse.csr_array)
    close_states(run(chosen, full)[0], run(chosen, sparse)[0], 1e-6)


@pytest.mark.parametrize("preset", ["default", "paper", "classical"])
@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_single_precision_is_close_to_double(preset: Any, form: Any) -> None:
    world = Planted(seed=3, missing=0.3)
    settled = {"min_iterations": 15, "max_iterations": 15}
    chosen = params(world.views, world.clusters, preset=preset, **settled)
    chunks = list(planted_chunks(world, chosen, sizes=[80, 50, 50]))
    double = run(chosen, converted(chunks, form))[0]
    single = run(chosen, converted(chunks, lambda rows: form(rows.astype(np.float32))))[0]
    close_states(double, single, 2e-4)
    assert any((double.views[name].Q != single.views[name].Q).any() for name in double.views)
