"""With finite input, no NaN and no infinity enters the state."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_fs.selector import (
    State,
    View,
    initial_state,
    merge,
    params,
    rank,
    read_chunk,
    update,
)
from stream_fs.selector.state import decay as decayed
from stream_fs.selector.state import flatten
from tests.support.random_streams import SEEDS, presence

PRESETS = ["default", "paper", "classical"]
TRANSFORMS = ["minmax", "unit", "none"]
SCALES = st.sampled_from([1e-30, 1e-18, 1e-9, 1.0, 1e9, 1e18, 1e30])


def feed(state: State, inputs: dict[str, Any], present: dict[str, Any] | None = None) -> State:
    """One update in which any overflow or invalid operation is an exception, and its check."""
    chunk = read_chunk(state.params.views, inputs, present)
    with np.errstate(all="raise", under="ignore"):
        state, report = update(state, chunk)
        ranking = rank(state)
    for name, array in flatten(state)[1].items():
        assert np.isfinite(array).all(), name
    assert np.isfinite(
        [*report.objective, *report.loss.values(), *report.orthogonality.values()]
    ).all()
    assert state.alpha.sum() == pytest.approx(1.0)
    for view in ranking.views:
        assert np.isfinite(view.scores).all()
        assert (view.scores >= 0).all()
        assert sorted(view.order.tolist()) == list(range(len(view.order)))
    for view_state in state.views.values():
        for array in (view_state.sum, view_state.Q, view_state.R, view_state.V):
            assert (array >= 0).all()
    return state


def matrix(
    rng: np.random.Generator, kind: str, size: int, d: int, scale: float
) -> NDArray[np.float64]:
    """Rows of one awkward kind, on one scale or on all of them."""
    values = rng.random((size, d))
    if kind == "zeros":
        values[:] = 0.0
    elif kind == "equal rows":
        values[:] = values[0]
    elif kind == "constant feature":
        values[:, rng.integers(d)] = 1.0
    elif kind == "mostly zeros":
        values *= rng.random((size, d)) < 0.1
    elif kind == "one row stands out":
        values[rng.integers(size)] *= 1e6
    elif kind == "mixed scales":
        values *= 10.0 ** rng.integers(-30, 31, (size, d)) / scale
    elif kind == "features on different scales":
        values *= 10.0 ** rng.integers(-30, 31, d) / scale
    elif kind == "rows on different scales":
        values *= 10.0 ** rng.integers(-30, 31, (size, 1)) / scale
    return values * scale


KINDS = [
    "plain",
    "zeros",
    "equal rows",
    "constant feature",
    "mostly zeros",
    "one row stands out",
    "mixed scales",
    "features on different scales",
    "rows on different scales",
]


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("transform", TRANSFORMS)
@settings(max_examples=15)
@given(data=st.data())
def test_finite_input_keeps_the_state_finite(
    preset: Any, transform: Any, data: st.DataObject
) -> None:
    draw = data.draw
    rng = np.random.default_rng(draw(SEEDS))
    dims = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    views = [View(f"v{number}", d, transform) for number, d in enumerate(dims)]
    K = draw(st.integers(1, 4))
    state = initial_state(
        params(
            views,
            K,
            preset=preset,
            max_iterations=12,
            decay=draw(st.sampled_from([1.0, 0.9, 1e-3])),
            absent_view=draw(st.sampled_from(["skip", "impute"])),
            score=draw(st.sampled_from(["relevance", "row_norm"])),
            xi=draw(st.sampled_from([0.0, 10.0, 1e6])),
            lam=draw(st.sampled_from([1.01, 3.0, 50.0])),
        )
    )
    for t in range(draw(st.integers(1, 4))):
        size = draw(st.integers(1 if t else K, 12))
        masks = presence(rng, len(views), size, draw(st.sampled_from([0.0, 0.5, 1.0])))
        inputs: dict[str, Any] = {}
        for view in views:
            rows = matrix(rng, draw(st.sampled_from(KINDS)), size, view.dimension, draw(SCALES))
            sign = draw(st.sampled_from([1, -1])) if transform == "minmax" else 1
            typed = (sign * rows).astype(draw(st.sampled_from([np.float32, np.float64])))
            sparse = sign > 0 and draw(st.booleans())
            inputs[view.name] = scipy.sparse.csr_array(typed) if sparse else typed
        present = {view.name: mask for view, mask in zip(views, masks, strict=True)}
        state = feed(state, inputs, present)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_extreme_numbers_keep_the_state_finite(preset: Any, transform: Any, dtype: Any) -> None:
    """Smallest and largest magnitudes of the type, or of the transform, in turn and together."""
    rng = np.random.default_rng(3)
    views = [View("a", 4, transform), View("b", 3, transform)]
    info = np.finfo(dtype)
    largest = 1e50 if transform == "none" and dtype is np.float64 else float(info.max)
    least = [float(info.smallest_subnormal), float(info.tiny), 1e-25, 1e-150, 1e-160, 1e-200]
    scales = [scale for scale in (*least, largest / 2, largest) if dtype(scale) > 0]
    state = initial_state(params(views, 3, preset=preset, max_iterations=12))
    for first, second in [
        *zip(scales, scales, strict=True),
        *zip(scales, scales[::-1], strict=True),
    ]:
        inputs = {
            view.name: (rng.random((9, view.dimension)) * scale).astype(dtype)
            for view, scale in zip(views, (first, second), strict=True)
        }
        feed(initial_state(state.params), inputs)
        state = feed(state, inputs)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("absent_view", ["skip", "impute"])
@pytest.mark.parametrize("rho", [1.0, 1e-6])
def test_a_long_absent_view_keeps_the_state_finite(
    preset: Any, absent_view: Any, rho: float
) -> None:
    """Its counts decay to the smallest numbers and on to zero; then it is back."""
    rng = np.random.default_rng(4)
    views = [View("a", 3), View("b", 4)]
    state = initial_state(
        params(views, 2, preset=preset, decay=rho, absent_view=absent_view, max_iterations=10)
    )
    state = feed(state, {"a": rng.random((8, 3)), "b": rng.random((8, 4))})
    for _ in range(60):
        state = feed(state, {"a": rng.random((2, 3))})
    before = state.views["b"].sum
    state = feed(state, {"a": rng.random((8, 3)), "b": rng.random((8, 4))})
    assert (state.views["b"].sum > before).all()
    assert state.views["b"].n == pytest.approx(8 * rho**61 + 8)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_feature_that_appears_after_the_first_chunk(preset: Any, dtype: Any) -> None:
    """Its row of V was driven to exactly zero; its row of Q then grows from chunk to chunk."""
    rng = np.random.default_rng(5)
    state = initial_state(params([View("a", 5), View("b", 4)], 3, preset=preset))
    for t in range(8):
        a = rng.random((60, 5))
        a[:, 0] *= t > 0
        state = feed(state, {"a": a.astype(dtype), "b": rng.random((60, 4)).astype(dtype)})


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize(
    "largest", [{"beta": 1e9}, {"theta": 1e9}, {"eta": 1e9}, {"xi": 1e9}, {"lam": 1e9}], ids=str
)
def test_the_largest_parameters(largest: dict[str, float], preset: Any, dtype: Any) -> None:
    rng = np.random.default_rng(7)
    views = [View("a", 5), View("b", 4)]
    state = initial_state(params(views, 3, preset=preset, **largest))
    for _ in range(3):
        a, b = rng.random((60, 5)), rng.random((60, 4))
        a[::2] = np.nan
        state = feed(state, {"a": a.astype(dtype), "b": b.astype(dtype)})


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("decay", "chunks"), [(0.5, 1100), (1e-20, 16), (5e-324, 1)])
def test_a_view_that_is_absent_until_little_is_left(
    decay: float, chunks: int, transform: Any, preset: Any
) -> None:
    """Its count becomes zero: neither tinier and tinier, nor the tiniest number for good."""
    rng = np.random.default_rng(10)
    views = [View("a", 5, transform), View("b", 4)]
    limits = {"min_iterations": 1, "max_iterations": 1}
    state = initial_state(params(views, 3, preset=preset, decay=decay, **limits))
    both = {"a": rng.random((9, 5)), "b": rng.random((9, 4))}
    state = feed(state, both)
    for _ in range(chunks):
        state = decayed(state)
        count = state.views["a"].n
        assert count == 0 or np.isfinite(1 / count**2)
    assert not state.views["a"].seen
    absent = feed(state, {"b": both["b"]})
    feed(merge([absent, feed(absent, {"b": both["b"]})]), both)


LARGE_LAMBDAS = [1e6, float(np.finfo(np.float64).max)]


@pytest.mark.parametrize("lam", LARGE_LAMBDAS)
@pytest.mark.parametrize("energy_scaling", [False, True])
def test_a_large_lambda_and_a_view_of_uneven_weight(lam: float, energy_scaling: bool) -> None:
    """A view that decayed to nothing comes back: it weighs twice as much as the other at first."""
    rng = np.random.default_rng(8)
    views = [View("a", 5), View("b", 4)]
    state = initial_state(params(views, 3, lam=lam, decay=1e-200, energy_scaling=energy_scaling))
    state = feed(state, {"a": rng.random((9, 5)), "b": rng.random((9, 4))})
    for _ in range(2):
        state = feed(state, {"a": rng.random((9, 5))})
    assert state.views["b"].n == 0
    feed(state, {"a": rng.random((9, 5)), "b": rng.random((9, 4))})


@pytest.mark.parametrize("lam", LARGE_LAMBDAS)
def test_a_large_lambda_and_models_of_different_views(lam: float) -> None:
    """Merged weights are uneven, and V is fitted with them."""
    rng = np.random.default_rng(9)
    views = [View("a", 5), View("b", 4)]
    start = initial_state(params(views, 3, preset="paper", lam=lam, energy_scaling=True))
    one = feed(start, {"a": rng.random((9, 5))})
    other = feed(start, {"a": rng.random((9, 5)), "b": rng.random((9, 4))})
    merged = merge([one, other])
    assert merged.alpha[0] > merged.alpha[1]
    for name, array in flatten(merged)[1].items():
        assert np.isfinite(array).all(), name


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("xi", [0.0, 1e-300, 10.0])
@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("scale", [1e-100, 1e-30, 1e-10, 1e25])
def test_a_single_view_beside_one_that_becomes_large(
    scale: float, transform: Any, xi: float, preset: Any
) -> None:
    """Without orthogonality U follows the large values, in every view, beyond float32's range."""
    rng = np.random.default_rng(0)
    views = [View("a", 5, transform), View("b", 4, "none")]
    state = initial_state(params(views, 1, preset=preset, xi=xi))
    for largest in (scale, 1e50, 1e50):
        a = rng.random((12, 5)).astype(np.float32)
        state = feed(state, {"a": a, "b": rng.random((12, 4)) * largest})


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("score", ["relevance", "row_norm"])
def test_a_late_view_keeps_the_state_finite(preset: Any, score: Any) -> None:
    rng = np.random.default_rng(6)
    views = [View("a", 5), View("b", 4), View("never", 3)]
    state = initial_state(params(views, 3, preset=preset, score=score))
    for _ in range(3):
        state = feed(state, {"a": rng.random((9, 5))})
    assert state.alpha.tolist() == [1.0, 0.0, 0.0]
    b = rng.random((9, 4))
    b[1:] = np.nan  # a single row is all that is known of it
    state = feed(state, {"a": rng.random((9, 5)), "b": b})
    assert state.alpha[1] > 0
    for _ in range(3):
        state = feed(state, {"a": rng.random((9, 5)), "b": rng.random((9, 4))})
    assert not rank(state)["never"].scores.any()
    assert rank(state)["b"].scores.any()
