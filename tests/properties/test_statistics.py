"""After every chunk the state holds the sums that stored data would give."""

from __future__ import annotations

import importlib
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_fs.selector import Chunk, Params, Report, State, View, initial_state, params, update
from stream_fs.selector.initialization import generator, signs
from stream_fs.selector.iterations import Fit
from tests.reference.algorithm1 import impute as built
from tests.reference.explicit import scale
from tests.support.random_streams import Layout, converted, dense, layouts, random_chunks

Matrix = NDArray[np.float64]
PRESETS = ["default", "paper", "classical"]


def observed(params: Params, chunks: Iterable[Chunk]) -> tuple[State, list[Report], list[Fit]]:
    """The state after the chunks, with what each one's iterations ended in."""
    module = importlib.import_module("stream_fs.selector.update")
    fits: list[Fit] = []

    def spy(*arguments: Any) -> Fit:
        fits.append(iterate(*arguments))
        return fits[-1]

    iterate = module.iterate
    state, reports = initial_state(params), []
    with mock.patch.object(module, "iterate", spy):
        for chunk in chunks:
            state, report = update(state, chunk)
            reports.append(report)
    return state, reports, fits


class Stored:
    """One view's whole stream, scaled as each chunk was, its missing rows built."""

    def __init__(self, chosen: Params, view: View, chunks: list[Chunk]) -> None:
        d = view.dimension
        lo, hi, total = np.full(d, np.inf), np.full(d, -np.inf), np.zeros(d)
        n = j = 0.0
        rows, masks, weights = [], [], []
        for chunk in chunks:
            mask = np.zeros(chunk.size, bool)
            X = np.zeros((chunk.size, d))
            if view.name in chunk.views:
                mask = chunk.views[view.name].present
                X[mask] = dense(chunk.views[view.name].rows)
                lo, hi = np.minimum(lo, X[mask].min(axis=0)), np.maximum(hi, X[mask].max(axis=0))
                X = scale(X, mask, str(view.transform), lo, hi)
            filled, w = built(X.T, mask, total, n, j)
            n, j, total = n + mask.sum(), j + chunk.size, total + X[mask].sum(axis=0)
            rows.append(filled.T)
            masks.append(mask)
            weights.append(w**2 if chosen.weights == "quality" else mask.astype(np.float64))
        self.X = np.concatenate(rows)
        self.present = np.concatenate(masks)
        self.fit = np.concatenate(weights)


@pytest.mark.parametrize("preset", PRESETS)
@pytest.mark.parametrize("transform", ["minmax", "unit", "none"])
@settings(max_examples=8)
@given(layout=layouts(sparse=False, dtype=np.float64))
def test_the_state_holds_the_sums_over_all_chunks(
    preset: Any, transform: Any, layout: Layout
) -> None:
    views = [View(name, d, transform) for name, d in zip(layout.names, layout.dims, strict=True)]
    chosen = params(
        views, layout.clusters, preset=preset, absent_view="impute", max_iterations=12, sketch=8
    )
    if preset != "default":
        chosen = replace(chosen, score="relevance")
    chunks = list(random_chunks(layout, chosen))
    assume(len(chunks[0].views) == len(views))
    state, reports, fits = observed(chosen, chunks)
    total = sum(chunk.size for chunk in chunks)
    assert (state.j, state.total, state.chunk) == (total, total, len(chunks))
    P = np.concatenate([fit.factors.consensus for fit in fits])
    P /= P.sum(axis=1, keepdims=True)
    G = np.concatenate(
        [signs(generator(0, "", "signs", t), chunk.size, 8) for t, chunk in enumerate(chunks)]
    )
    close = np.testing.assert_allclose
    for number, view in enumerate(chosen.views):
        stored, now = Stored(chosen, view, chunks), state.views[view.name]
        X, W, here = stored.X, stored.fit[:, None], stored.present
        U = np.concatenate([fit.factors.U[number] for fit in fits])
        assert now.n == here.sum()
        close(now.sum, X[here].sum(axis=0), rtol=1e-9)
        close(now.energy, (W * X**2).sum(), rtol=1e-9)
        close(now.R, U.T @ (W * U), rtol=1e-9)
        close(now.Q, X.T @ (W * U), rtol=1e-9)
        close(now.V, fits[-1].factors.V[number], rtol=1e-12)
        loss = float((W * (X - U @ now.V.T) ** 2).sum())
        energy = max(now.energy, 1e-300)
        assert reports[-1].loss[view.name] == pytest.approx(loss / energy, rel=1e-6, abs=1e-9)
        assert now.moments is not None
        assert now.sketch is not None
        close(now.moments.C, P[here].sum(axis=0), rtol=1e-9)
        close(now.moments.C2, (P[here] ** 2).sum(axis=0), rtol=1e-9)
        close(now.moments.Z, X[here].T @ P[here], rtol=1e-9)
        close(now.moments.q, (X[here] ** 2).sum(axis=0), rtol=1e-9)
        assert now.moments.n2 == here.sum()
        close(now.sketch.Y, X[here].T @ G[here], rtol=1e-9, atol=1e-9)
        close(now.sketch.g, G[here].sum(axis=0))


@settings(max_examples=20)
@given(layout=layouts(sparse=False, dtype=np.float64))
def test_the_accumulated_loss_is_the_sum_of_each_chunks_own(layout: Layout) -> None:
    views = [View(name, d) for name, d in zip(layout.names, layout.dims, strict=True)]
    chosen = params(views, layout.clusters, preset="paper", max_iterations=12)
    chunks = list(random_chunks(layout, chosen))
    assume(len(chunks[0].views) == len(views))
    state, _, fits = observed(chosen, chunks)
    for number, view in enumerate(chosen.views):
        stored = Stored(chosen, view, chunks)
        expected, begin = 0.0, 0
        for chunk, fit in zip(chunks, fits, strict=True):
            here = slice(begin, begin + chunk.size)
            apart = stored.X[here] - fit.factors.U[number] @ fit.factors.V[number].T
            expected += float((stored.fit[here, None] * apart**2).sum())
            begin += chunk.size
        assert state.views[view.name].loss == pytest.approx(expected, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=10)
@given(layout=layouts(views=1))
def test_the_consensus_of_one_view_is_that_view(preset: Any, layout: Layout) -> None:
    chosen = params([View("view 0", layout.dims[0])], layout.clusters, preset=preset)
    state, _, fits = observed(chosen, random_chunks(layout, chosen))
    np.testing.assert_array_equal(state.alpha, [1.0])
    for fit in fits:
        np.testing.assert_allclose(fit.factors.consensus, fit.factors.U[0], rtol=1e-12)


@settings(max_examples=10)
@given(layout=layouts(), preset=st.sampled_from(["default", "paper"]))
def test_a_large_lambda_weights_all_views_equally(layout: Layout, preset: Any) -> None:
    layout = replace(layout, sizes=layout.sizes[:1], missing=0.3)
    views = [View(name, d) for name, d in zip(layout.names, layout.dims, strict=True)]
    chosen = params(views, layout.clusters, preset=preset, lam=1e8, max_iterations=10)
    chunks = list(random_chunks(layout, chosen))
    alpha = observed(chosen, chunks)[0].alpha
    present = [name in chunks[0].views for name in layout.names]
    np.testing.assert_allclose(alpha[present], 1 / sum(present), rtol=1e-5)


@pytest.mark.parametrize("preset", PRESETS)
@settings(max_examples=10)
@given(layout=layouts(sparse=False, missing=(0.0,)))
def test_where_nothing_is_missing_every_row_counts_one(preset: Any, layout: Layout) -> None:
    """Eq. 11 without weights: R and energy are plain sums."""
    views = [View(name, d, "none") for name, d in zip(layout.names, layout.dims, strict=True)]
    chosen = params(views, layout.clusters, preset=preset, max_iterations=10)
    chunks = converted(random_chunks(layout, chosen), lambda rows: rows.astype(np.float64))
    state, _, fits = observed(chosen, chunks)
    for number, view in enumerate(views):
        X = np.concatenate([dense(chunk.views[view.name].rows) for chunk in chunks])
        U = np.concatenate([fit.factors.U[number] for fit in fits])
        np.testing.assert_allclose(state.views[view.name].R, U.T @ U, rtol=1e-9)
        np.testing.assert_allclose(state.views[view.name].Q, X.T @ U, rtol=1e-9)
        np.testing.assert_allclose(state.views[view.name].energy, (X**2).sum(), rtol=1e-9)
