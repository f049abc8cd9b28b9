"""V of a merged model: the minimum for the merged sums, from any start."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from stream_fs.selector import State, View, initial_state, params, read_chunk, update
from stream_fs.selector.merge.combine import fitted, refit
from stream_fs.selector.parameters import Transform

ETA = 0.3


def model(transform: Transform = "unit") -> State:
    rng = np.random.default_rng(4)
    chosen = params([View("v", 8, transform)], 3, preset="paper", max_iterations=10, eta=ETA)
    chunk = read_chunk(chosen.views, {"v": rng.random((60, 8))})
    return update(initial_state(chosen), chunk)[0]


def test_the_minimum_does_not_depend_on_the_start() -> None:
    view = model().views["v"]
    other = replace(view, V=np.random.default_rng(1).random(view.V.shape))
    V = fitted(view, 1.0, ETA)
    np.testing.assert_allclose(fitted(other, 1.0, ETA), V, rtol=1e-3, atol=1e-3 * V.max())


@pytest.mark.parametrize("weight", [0.5, 1.0])
def test_no_step_from_the_minimum_leads_down(weight: float) -> None:
    view = model().views["v"]

    def objective(V: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> float:
        fit = np.vdot(V.T @ V, view.R) - 2 * np.vdot(V, view.Q)
        return float(weight * fit + ETA * np.linalg.norm(V, axis=1).sum())

    V = fitted(view, weight, ETA)
    least = objective(V)
    assert least < objective(view.V)
    rng = np.random.default_rng(0)
    for size in (1e-3, 1e-2, 1e-1):
        for _ in range(50):
            tried = np.maximum(V + size * V.max() * rng.normal(size=V.shape), 0.0)
            assert objective(tried) >= least - 1e-7 * abs(least)


def test_a_running_range_keeps_the_mean() -> None:
    """There the sums of different models are not of one space."""
    state = model("minmax")
    np.testing.assert_array_equal(refit(state).views["v"].V, state.views["v"].V)
    assert not np.array_equal(refit(model()).views["v"].V, model().views["v"].V)
