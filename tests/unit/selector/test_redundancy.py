"""The greedy order against redundancy."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from stream_fs.selector import redundancy
from stream_fs.selector.parameters import View, params
from stream_fs.selector.redundancy import directions, order
from stream_fs.selector.state import Sketch, initial_state
from tests.support.random_streams import SEEDS

Scores = NDArray[np.float64]


def plain_greedy(scores: Scores, rows: NDArray[Any], depth: int) -> list[int]:
    """The rule, word for word: one feature at a time, all others brought up to date each time."""
    b = 2 / rows.shape[1]
    redundancy = np.zeros(len(scores))
    chosen: list[int] = []
    left = list(range(len(scores)))
    while left and len(chosen) < depth:
        value = {i: scores[i] * (1 - redundancy[i]) for i in left}
        best = max(left, key=lambda i: (value[i], -i))
        if value[best] <= 0:
            break
        left.remove(best)
        chosen.append(best)
        cosines = (rows @ rows[best]).astype(np.float64)
        redundancy = np.maximum(redundancy, np.clip((cosines**2 - b) / (1 - b), 0, 1))
    return chosen + sorted(left, key=lambda i: (-scores[i], i))


@st.composite
def exact_instances(draw: st.DrawFn) -> tuple[Scores, NDArray[np.float32]]:
    """Cosines of 0, ±½ and ±1, and few distinct scores: values are exact and tie often."""
    d, r = draw(st.integers(1, 60)), draw(st.sampled_from([4, 8, 16, 32]))
    rng = np.random.default_rng(draw(SEEDS))
    few = np.array([0.0, 0.4, 0.5, 0.8, 1.0])  # r = 32: cos² = ¼ leaves 0.8 of a value
    scores = rng.choice(few, size=d) if draw(st.booleans()) else rng.random(d)
    rows = np.zeros((d, r))
    for row in rows:
        axes = rng.permutation(4)[: rng.choice([0, 1, 1, 4])]
        row[axes] = rng.choice([-1, 1], size=len(axes)) / np.sqrt(max(len(axes), 1))
    return scores, rows.astype(np.float32)


@given(instance=exact_instances(), block=st.sampled_from([1, 2, 3, 7, 20, 256]), data=st.data())
def test_blocks_give_the_order_of_the_plain_rule(
    instance: tuple[Scores, Any], block: int, data: st.DataObject
) -> None:
    scores, rows = instance
    depth = data.draw(st.integers(1, len(scores) + 3))
    blocks = (block, data.draw(st.sampled_from([block, 2 * block])))
    # Of 20 choices, 16 cosines at once are not all.
    with mock.patch.multiple(redundancy, BLOCKS=blocks, TOGETHER=1):
        assert order(scores, rows, depth).tolist() == plain_greedy(scores, rows, depth)
        assert order(scores, rows).tolist() == plain_greedy(scores, rows, len(scores))


@given(
    seed=SEEDS,
    d=st.integers(1, 80),
    r=st.integers(3, 64),
    block=st.sampled_from([1, 5, 256]),
)
def test_no_feature_beats_the_one_that_was_chosen(seed: int, d: int, r: int, block: int) -> None:
    """Among any directions, copies included, but for rounding."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(d, r)) + 2 * rng.normal(size=r)
    rows[rng.random(d) < 0.3] = rows[0]
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    scores = rng.random(d)
    with mock.patch.object(redundancy, "BLOCKS", (block, block)):
        found = order(scores, rows.astype(np.float32)).tolist()
    assert sorted(found) == list(range(d))
    b = 2 / r
    likeness = np.clip(((rows @ rows.T) ** 2 - b) / (1 - b), 0, 1)
    novelty = np.ones(d)
    for place, feature in enumerate(found):
        value = scores * novelty
        assert value[feature] >= value[found[place:]].max() - 1e-4
        novelty = np.minimum(novelty, 1 - likeness[feature])


def test_copies_that_are_left_over_follow_by_score() -> None:
    """Their value is nothing but rounding, which must not order them."""
    rng = np.random.default_rng(1)
    row = rng.normal(size=64)
    rows = (row / np.linalg.norm(row) * (1 + 1e-7 * rng.normal(size=(300, 64)))).astype(np.float32)
    scores = rng.random(300)
    for block in (1, 7, 256):
        with mock.patch.object(redundancy, "BLOCKS", (block, block)):
            assert order(scores, rows).tolist() == np.argsort(-scores).tolist()


def test_without_directions_the_order_is_by_score_and_index() -> None:
    assert order(np.array([0.5, 1.0, 0.5, 0.0, 1.0]), None).tolist() == [1, 4, 0, 2, 3]


def test_a_copy_waits_within_the_depth() -> None:
    rows = np.eye(8, dtype=np.float32)[[0, 0, 1, 2]]
    scores = np.array([0.9, 0.8, 0.3, 0.3])
    assert order(scores, rows).tolist() == [0, 2, 3, 1]
    assert order(scores, rows, 1).tolist() == [0, 1, 2, 3]
    assert order(scores, -rows, 3).tolist() == [0, 2, 3, 1]


def test_a_likeness_that_chance_would_give_costs_nothing() -> None:
    """r = 8, b = 1/4: cos² = 1/4 is free, cos² = 5/8 halves the value."""
    rows = np.zeros((3, 8), np.float32)
    rows[0, 0] = 1.0
    rows[1, :2] = [0.5, np.sqrt(0.75)]
    rows[2, 0], rows[2, 2] = np.sqrt(5 / 8), np.sqrt(3 / 8)
    assert order(np.array([1.0, 0.41, 0.8]), rows).tolist() == [0, 1, 2]
    assert order(np.array([1.0, 0.39, 0.8]), rows).tolist() == [0, 2, 1]


@pytest.mark.parametrize("rows", [1, 2, 1024])
def test_directions_are_centred_and_of_unit_length(rows: int) -> None:
    state = initial_state(params([View("v", 3)], 2, sketch=4))
    view = state.views["v"]
    assert directions(view) is None  # nothing seen
    Y = np.array([[3.0, 5.0, 3.0, 3.0], [1.0, 1.0, 1.0, 1.0], [2.0, 2.0, 0.0, 2.0]])
    sketch = Sketch(Y, np.array([2.0, 2.0, 2.0, 2.0]))
    with mock.patch.object(redundancy, "ROWS", rows):
        found = directions(replace(view, n=4.0, sum=np.array([6.0, 2.0, 4.0]), sketch=sketch))
    assert found is not None
    # μ = (3/2, 1/2, 1): Y − μgᵀ = (0, 2, 0, 0), (0, 0, 0, 0), (0, 0, −2, 0)
    np.testing.assert_allclose(found, [[0, 1, 0, 0], [0, 0, 0, 0], [0, 0, -1, 0]])
