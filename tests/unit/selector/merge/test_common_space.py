"""Sums of models with ranges of their own, brought to one range."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from stream_fs.selector import State, View, initial_state, params, read_chunk, update
from stream_fs.selector.merge.common_space import in_common_space
from stream_fs.selector.parameters import Transform
from tests.support.random_streams import state_bytes


def model(matrix: Any, transform: Transform = "minmax", origin: str = "") -> State:
    chosen = params([View("v", np.shape(matrix)[1], transform)], 2, max_iterations=10)
    chunk = read_chunk(chosen.views, {"v": np.asarray(matrix, float)})
    return update(initial_state(chosen, origin), chunk)[0]


def halves(raised: float, lowered: float) -> tuple[Any, Any]:
    """Two matrices with 30 features; in the second, two have another range."""
    rng = np.random.default_rng(6)
    one, other = rng.random((200, 30)), rng.random((200, 30))
    for rows in (one, other):
        rows[0], rows[1] = 0.0, 1.0  # both reach the ends of the range
    other[:, 0] *= raised
    other[:, 1] -= lowered
    return one, other


def test_models_of_one_range_stay_as_they_are() -> None:
    one, other = (model(matrix) for matrix in halves(1.0, 0.0))
    for before, after in zip([one, other], in_common_space([one, other]), strict=True):
        assert state_bytes(after) == state_bytes(before)


@pytest.mark.parametrize("transform", ["unit", "none"])
def test_spaces_without_a_range_stay_as_they_are(transform: Transform) -> None:
    models = [model(matrix, transform) for matrix in halves(3.0, 0.0)]
    for before, after in zip(models, in_common_space(models), strict=True):
        assert state_bytes(after) == state_bytes(before)


@pytest.mark.parametrize(("raised", "lowered"), [(4.0, 0.0), (1.0, 2.0), (4.0, 2.0)])
def test_sums_are_near_those_of_the_wider_range(raised: float, lowered: float) -> None:
    """Feature by feature within a tenth of what the rows themselves give in the joint range."""
    matrices = halves(raised, lowered)
    lo = np.minimum(*(rows.min(axis=0) for rows in matrices))
    hi = np.maximum(*(rows.max(axis=0) for rows in matrices))
    moved = in_common_space([model(rows) for rows in matrices])
    for rows, state in zip(matrices, moved, strict=True):
        shares = (rows - lo) / (hi - lo)
        shares /= np.linalg.norm(shares, axis=1, keepdims=True).clip(1e-12)
        view = state.views["v"]
        assert view.moments is not None
        assert view.range is not None
        np.testing.assert_array_equal(view.range.lo, lo)
        np.testing.assert_array_equal(view.range.hi, hi)
        expected = shares.sum(axis=0)
        # The typical length is a guess, which features far from their old range feel most.
        np.testing.assert_allclose(view.sum[2:], expected[2:], rtol=0.1)
        np.testing.assert_allclose(view.sum[:2], expected[:2], rtol=0.5)
        np.testing.assert_allclose(view.moments.q[2:], (shares**2).sum(axis=0)[2:], rtol=0.2)
        # Clusters still add up to the whole, and rows to unit length.
        np.testing.assert_allclose(view.moments.Z.sum(axis=1), view.sum, rtol=1e-5)
        assert view.moments.q.sum() == pytest.approx(199, rel=1e-4)


def test_a_feature_that_is_constant_in_one_model_gets_its_place() -> None:
    one, other = halves(1.0, 0.0)
    one[:, 5] = 0.9
    before = model(one)
    assert before.views["v"].sum[5] == 0.0
    after = in_common_space([before, model(other)])[0].views["v"]
    assert after.moments is not None
    mean = after.sum[5] / after.n
    assert mean > after.sum[6] / after.n
    assert after.moments.q[5] / after.n - mean**2 == pytest.approx(0.0, abs=1e-9)
