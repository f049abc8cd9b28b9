"""The selector equals the slow, obvious forms of the algorithm, chunk for chunk, to rounding."""

from __future__ import annotations

import importlib
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_fs.selector import Params, State, View, initial_state, params, rank, read_chunk, update
from stream_fs.selector.initialization import generator, signs
from stream_fs.selector.iterations import Fit
from stream_fs.selector.update import random_factors, random_indicator
from tests.reference.algorithm1 import Algorithm1
from tests.reference.explicit import Explicit
from tests.support.random_streams import SEEDS, presence

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]
NUMBERS = {"lam": 2.5, "beta": 0.7, "theta": 0.2, "eta": 0.05}


class Stream:
    """Chunks of random rows; any view may be missing from rows, and from whole chunks."""

    def __init__(
        self, seed: int, dims: list[int], sizes: list[int], missing: float, absent: list[list[int]]
    ) -> None:
        rng = np.random.default_rng(seed)
        self.names = [f"view {v}" for v in range(len(dims))]
        self.chunks: list[tuple[list[Matrix], list[Mask]]] = []
        for size, away in zip(sizes, absent, strict=True):
            here = [v for v in range(len(dims)) if v not in away]
            masks = [np.zeros(size, bool) for _ in dims]
            for v, mask in zip(here, presence(rng, len(here), size, missing), strict=True):
                masks[v] = mask
            kinds = rng.integers(3, size=size)
            views = [
                np.where(mask[:, None], rng.random((3, d))[kinds] + rng.random((size, d)), np.nan)
                for d, mask in zip(dims, masks, strict=True)
            ]
            self.chunks.append((views, masks))

    def inputs(self, number: int) -> dict[str, Matrix]:
        return dict(zip(self.names, self.chunks[number][0], strict=True))


@st.composite
def streams(draw: st.DrawFn, *, least: int, missing: tuple[float, ...]) -> Stream:
    """Three views; the last one is away at first, the second later on."""
    first = draw(st.sampled_from([[], [2]]))
    return Stream(
        seed=draw(SEEDS),
        dims=[draw(st.integers(5, 9)) for _ in range(3)],
        sizes=[30, *draw(st.lists(st.integers(least, 15), min_size=3, max_size=3))],
        missing=draw(st.sampled_from(missing)),
        absent=[first, first, draw(st.sampled_from([[], [1]])), []],
    )


def followed(state: State, inputs: dict[str, Matrix]) -> tuple[State, Any, Fit]:
    """One update, with where its iterations ended."""
    module = importlib.import_module("stream_fs.selector.update")
    iterate = module.iterate
    fits: list[Fit] = []

    def spy(*arguments: Any) -> Fit:
        fits.append(iterate(*arguments))
        return fits[-1]

    with mock.patch.object(module, "iterate", spy):
        state, report = update(state, read_chunk(state.params.views, inputs))
    return state, report, fits[0]


def close(found: Any, expected: Any, what: str = "") -> None:
    """Equal to rounding that dozens of iterations passed on, relative to the largest entry."""
    expected = np.asarray(expected, np.float64)
    scale = max(float(np.max(np.abs(expected), initial=0.0)), 1e-9)
    np.testing.assert_allclose(
        np.asarray(found) / scale, expected / scale, rtol=0, atol=1e-7, err_msg=what
    )


@pytest.mark.parametrize("preset", ["paper", "classical"])
@settings(max_examples=8)
@given(stream=streams(least=1, missing=(0.0, 0.3, 0.6)), xi=st.sampled_from([1.0, 1e3]))
def test_the_printed_method_is_algorithm_1(preset: Any, stream: Stream, xi: float) -> None:
    dims = [views.shape[1] for views in stream.chunks[0][0]]
    views = [View(name, d) for name, d in zip(stream.names, dims, strict=True)]
    chosen = params(views, 3, preset=preset, seed=5, xi=xi, **NUMBERS)
    plain = Algorithm1(dims, 3, xi=xi, classical=preset == "classical", **NUMBERS)
    start = [random_factors(chosen, "", view) for view in chosen.views]
    state = initial_state(chosen)
    for t, (matrices, masks) in enumerate(stream.chunks):
        U = [random_indicator(chosen, "", view, t, len(masks[0])) for view in chosen.views]
        expected = plain.chunk(matrices, masks, start, U)
        state, report, fit = followed(state, stream.inputs(t))
        assert report.iterations == expected.iterations
        close(report.objective, expected.objective, "objective")
        close(state.alpha, expected.alpha, "alpha")
        close(fit.factors.consensus, expected.consensus, "consensus")
        members = [v for v, view in enumerate(stream.names) if state.views[view].n > 0]
        for place, v in enumerate(members):
            view, carried = state.views[stream.names[v]], plain.state.views[v]
            close(fit.factors.U[place], expected.U[v], "U")
            close(view.V, expected.V[v], "V")
            close(view.R, expected.R[v], "R")
            close(view.Q, expected.Q[v], "Q")
            close(view.sum, carried.total, "sum")
            close(view.loss, carried.loss, "loss")
            close(view.energy, expected.s[v], "energy")
            close(rank(state)[stream.names[v]].scores, expected.scores[v], "scores")
            assert view.n == carried.n
        assert state.j == plain.state.j


def first_clusters(chosen: Params, size: int) -> Matrix:
    """A soft start, as the spectral clustering would give one."""
    labels = np.random.default_rng(size).integers(chosen.clusters, size=size)
    return np.asarray(0.9 * np.eye(chosen.clusters)[labels] + 0.1 / chosen.clusters, np.float64)


@pytest.mark.parametrize("transform", ["minmax", "unit", "none"])
@settings(max_examples=6)
@given(
    stream=streams(least=10, missing=(0.0, 0.3)),
    rho=st.sampled_from([1.0, 0.8]),
    inner=st.sampled_from([1, 2]),
)
def test_the_default_preset_is_its_explicit_form(
    transform: Any, stream: Stream, rho: float, inner: int
) -> None:
    dims = [views.shape[1] for views in stream.chunks[0][0]]
    views = [View(name, d, transform) for name, d in zip(stream.names, dims, strict=True)]
    chosen = params(views, 3, seed=5, decay=rho, inner_updates=inner)
    plain = Explicit(dims, 3, decay=rho, transforms=[transform] * 3, inner_updates=inner)
    state = initial_state(chosen)
    module = importlib.import_module("stream_fs.selector.update")
    for t, (matrices, masks) in enumerate(stream.chunks):
        size = len(masks[0])
        P = first_clusters(chosen, size)
        G = np.asarray(signs(generator(5, "", "signs", t), size, chosen.sketch), np.float64)
        expected = plain.chunk(matrices, masks, G, P)
        with mock.patch.object(module, "spectral_start", lambda *_, P=P: P):
            state, report, fit = followed(state, stream.inputs(t))
        assert report.iterations == expected.iterations
        close(report.objective, expected.objective, "objective")
        close(state.alpha, expected.alpha, "alpha")
        close(fit.factors.consensus, expected.consensus, "consensus")
        assert state.j == pytest.approx(plain.j)
        assert state.total == plain.total
        ranking = rank(state)
        for v, name in enumerate(stream.names):
            view, carried = state.views[name], expected.views[v]
            assert view.moments is not None
            assert view.sketch is not None
            for what, found, wanted in [
                ("V", view.V, carried.V),
                ("R", view.R, carried.R),
                ("Q", view.Q, carried.Q),
                ("sum", view.sum, carried.m),
                ("energy", view.energy, carried.s),
                ("C", view.moments.C, carried.C),
                ("C2", view.moments.C2, carried.C2),
                ("Z", view.moments.Z, carried.Z),
                ("q", view.moments.q, carried.q),
                ("n2", view.moments.n2, carried.n2),
                ("Y", view.sketch.Y, carried.Y),
                ("g", view.sketch.g, carried.g),
                ("relevance", ranking[name].scores, expected.relevance[v]),
            ]:
                close(found, wanted, f"{what} of {name}")
            assert view.n == pytest.approx(carried.n)
            if expected.relevance[v].all():
                assert ranking[name].order.tolist() == expected.order[v].tolist()
