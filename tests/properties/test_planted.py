"""Streams with a known answer: planted features are found, copies last, noise scores zero."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from stream_fs.selector import View, params, rank
from stream_fs.selector.parameters import Params
from stream_fs.selector.ranking import view_scores
from stream_fs.selector.relevance import relevance
from stream_fs.selector.state import Moments, decay, initial_state
from tests.support.planted_streams import Planted, area_under_curve, planted_chunks
from tests.support.random_streams import run

SIZES = [120, 60, 60, 60, 60]
SEEDS = range(4)


def chosen_for(world: Planted, **setting: Any) -> Params:
    return params(world.views, world.clusters, **setting)


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("setting", [{}, {"decay": 0.8}, {"inner_updates": 2}], ids=str)
def test_planted_features_are_found(setting: dict[str, Any], seed: int) -> None:
    world = Planted(seed=seed)
    chosen = chosen_for(world, **setting)
    scores = view_scores(run(chosen, planted_chunks(world, chosen, SIZES))[0])
    for scored in scores.values():
        assert area_under_curve(scored, world.is_noise) > 0.97
        # Noise explains nothing; what is left is what the consensus fits of it by chance.
        assert scored[world.is_noise].mean() < 0.02
        assert scored[~world.is_noise].mean() > 0.3


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("preset", ["paper", "classical"])
def test_row_norms_find_features_with_large_values(preset: Any, seed: int) -> None:
    """They follow a feature's mean, so noise must be small to be distinguished."""
    world = Planted(seed=seed, noise_scale=0.1)
    chosen = chosen_for(world, preset=preset)
    scores = view_scores(run(chosen, planted_chunks(world, chosen, SIZES))[0])
    for scored in scores.values():
        assert area_under_curve(scored, world.is_noise) > 0.97


@pytest.mark.parametrize("seed", SEEDS)
def test_copies_of_a_chosen_feature_rank_behind_new_features(seed: int) -> None:
    """Each of the first places, as many as there are different informative features, is new."""
    world = Planted(seed=seed)
    chosen = chosen_for(world)
    ranking = rank(run(chosen, planted_chunks(world, chosen, SIZES))[0])
    for view in ranking.views:
        copied = [
            int(feature) - world.informative if feature >= world.informative else int(feature)
            for feature in view.order[: world.informative]
            if feature < world.informative + world.copies
        ]
        assert len(copied) == len(set(copied))
        assert len(copied) > world.informative / 2
        # By relevance alone each copy stands beside its original.
        plain = np.argsort(-view.scores, kind="stable")
        assert len(set(plain[: world.informative])) == world.informative


Matrix = NDArray[np.float64]


def explained(X: Matrix, P: Matrix, weights: Matrix) -> tuple[Matrix, Matrix]:
    """B and T of each feature, from weighted rows."""
    n = weights.sum()
    mean = weights @ X / n
    C = weights @ P
    means = (X * weights[:, None]).T @ P / C
    return (means - mean[:, None]) ** 2 @ C / n, weights @ X**2 / n - mean**2


def relevance_of_stream(X: Matrix, P: Matrix, chunks: int, rho: float) -> Matrix:
    """Relevance from sums that were decayed before every chunk."""
    state = initial_state(params([View("v", X.shape[1], "none")], P.shape[1], decay=rho))
    for rows, share in zip(np.split(X, chunks), np.split(P, chunks), strict=True):
        view = decay(state).views["v"]
        assert view.moments is not None
        moments = Moments(
            C=view.moments.C + share.sum(axis=0),
            C2=view.moments.C2 + (share**2).sum(axis=0),
            Z=view.moments.Z + rows.T @ share,
            q=view.moments.q + (rows**2).sum(axis=0),
            n2=view.moments.n2 + len(rows),
        )
        view = replace(view, n=view.n + len(rows), sum=view.sum + rows.sum(axis=0), moments=moments)
        state = replace(state, views={"v": view}, chunk=state.chunk + 1)
    view = state.views["v"]
    assert view.moments is not None
    return relevance(view.n, view.sum, view.moments)


@pytest.mark.parametrize("rho", [1.0, 0.9, 0.6])
def test_relevance_excludes_what_chance_explains(rho: float) -> None:
    """Noise on top of a signal: on average over many features, only the signal's share is left.

    What chance explains is measured on other noise, not taken from the formula.
    """
    rng = np.random.default_rng(7)
    d, K, rows, chunks = 4000, 5, 10, 6
    P = rng.dirichlet([0.1, 0.1, 0.1, 0.2, 0.2], rows * chunks)
    weights = np.asarray(rho ** np.repeat(np.arange(chunks)[::-1], rows), np.float64)
    between, variance = explained(rng.normal(size=(rows * chunks, d)), P, weights)
    null = between.mean() / variance.mean()
    signal = P @ rng.normal(size=(K, d))
    signal -= weights @ signal / weights.sum()  # no mean, no demotion
    X = signal + 0.5 * rng.normal(size=signal.shape)
    scored = relevance_of_stream(X, P, chunks, rho)
    between, within = explained(signal, P, weights)
    excess = scored * explained(X, P, weights)[1] - (between - within * null)
    error = excess.std() / np.sqrt(d)
    assert excess.mean() == pytest.approx(0.0, abs=4 * error)
    assert error < 0.05 * null
    assert null > 0.02
    noise = relevance_of_stream(rng.normal(size=X.shape), P, chunks, rho)
    assert noise.mean() < null
    assert 0.3 < (noise > 0).mean() < 0.5
