"""Invariances: the order of features, and their units."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from stream_fs.selector import Chunk, Params, State, View, params
from stream_fs.selector.ranking import view_scores
from tests.support.planted_streams import Planted, planted_chunks
from tests.support.random_streams import SEEDS, run

SETTLED: dict[str, Any] = {"min_iterations": 12, "max_iterations": 12}
SIZES = [80, 40, 40]


def changed(chunks: list[Chunk], name: str, change: Callable[[Any], Any]) -> list[Chunk]:
    return [
        replace(
            chunk,
            views={
                **chunk.views,
                name: replace(chunk.views[name], rows=change(chunk.views[name].rows)),
            },
        )
        for chunk in chunks
    ]


def run_with_factors(chosen: Params, chunks: list[Chunk], permutation: NDArray[np.intp]) -> State:
    """The stream with the first V of the first view permuted like its features."""
    module = importlib.import_module("stream_fs.selector.update")
    original = module.random_factors

    def permuted(params: Params, origin: str, view: View) -> Any:
        V = original(params, origin, view)
        return V[permutation] if view.name == "view 0" else V

    with mock.patch.object(module, "random_factors", permuted):
        return run(chosen, chunks)[0]


@pytest.mark.parametrize("score", ["relevance", "row_norm"])
@pytest.mark.parametrize("preset", ["default", "paper", "classical"])
@settings(max_examples=4)
@given(seed=SEEDS)
def test_permuting_features_permutes_their_scores(preset: Any, score: Any, seed: int) -> None:
    world = Planted(seed=seed)
    chosen = params(world.views, world.clusters, preset=preset, score=score, **SETTLED)
    chunks = list(planted_chunks(world, chosen, SIZES))
    permutation = np.random.default_rng(seed).permutation(world.dimension)
    plain = run(chosen, chunks)[0]
    mixed = changed(chunks, "view 0", lambda rows: rows[:, permutation])
    other = run_with_factors(chosen, mixed, permutation)
    before, after = view_scores(plain), view_scores(other)
    assert before["view 0"].std() > 0
    np.testing.assert_allclose(after["view 0"], before["view 0"][permutation], rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(after["view 1"], before["view 1"], rtol=1e-6, atol=1e-9)
    if plain.params.sketch:
        one, two = plain.views["view 0"].sketch, other.views["view 0"].sketch
        assert one is not None
        assert two is not None
        np.testing.assert_allclose(two.Y, one.Y[permutation], rtol=1e-9, atol=1e-9)


@settings(max_examples=4)
@given(seed=SEEDS)
def test_copies_are_equally_relevant(seed: int) -> None:
    world = Planted(seed=seed)
    chosen = params(world.views, world.clusters)
    scores = view_scores(run(chosen, planted_chunks(world, chosen, SIZES))[0])
    for relevance in scores.values():
        copies = relevance[world.informative : world.informative + world.copies]
        np.testing.assert_allclose(copies, relevance[: world.copies], rtol=1e-9)
        assert relevance.std() > 0.05


@settings(max_examples=4)
@given(seed=SEEDS)
def test_the_unit_of_a_feature_does_not_matter(seed: int) -> None:
    world = Planted(seed=seed)
    chosen = params(world.views, world.clusters, **SETTLED)
    chunks = list(planted_chunks(world, chosen, SIZES))
    rng = np.random.default_rng(seed)
    unit = 10.0 ** rng.integers(-6, 7, world.dimension)
    zero = rng.normal(size=world.dimension)
    other = changed(chunks, "view 1", lambda rows: unit * (rows + zero))
    before, after = view_scores(run(chosen, chunks)[0]), view_scores(run(chosen, other)[0])
    for name in before:
        np.testing.assert_allclose(after[name], before[name], rtol=1e-5, atol=1e-9)
