"""Scores by hand."""

from __future__ import annotations

import numpy as np
import pytest

from stream_fs.selector.relevance import relevance, row_norms
from stream_fs.selector.state import Moments


def moments_of(X: np.ndarray, P: np.ndarray) -> tuple[float, np.ndarray, Moments]:
    sums = Moments(P.sum(axis=0), (P**2).sum(axis=0), X.T @ P, (X**2).sum(axis=0), float(len(X)))
    return float(len(X)), X.sum(axis=0), sums


def test_relevance_by_hand() -> None:
    """Four rows in two hard clusters; null = 2·(2/(2·4)) − 1/4 = 1/4."""
    P = np.repeat(np.eye(2), 2, axis=0)
    X = np.array(
        [
            [1.0, 1.0, 5.0, 0.0, 10.0],
            [1.0, -1.0, 5.0, 2.0, 10.0],
            [-1.0, 1.0, 5.0, 0.0, 12.0],
            [-1.0, -1.0, 5.0, -2.0, 12.0],
        ]
    )
    expected = [
        1 - 1 / 4,  # all of its variance is between the clusters
        0.0,  # none: B = 0 is below chance
        0.0,  # constant
        (1 - 2 / 4) / 2,  # μ = 0, T = 2, B = 1
        (1 - 1 / 4) / (1 + 0.01 * 121),  # as the first, demoted for its mean of 11
    ]
    np.testing.assert_allclose(relevance(*moments_of(X, P)), expected, atol=1e-12)


def test_an_empty_cluster_counts_nothing() -> None:
    rng = np.random.default_rng(0)
    P = rng.dirichlet([1.0, 1.0], 30)
    X = rng.random((30, 4))
    with_empty = np.column_stack([P, np.zeros(30)])
    np.testing.assert_allclose(
        relevance(*moments_of(X, with_empty)), relevance(*moments_of(X, P)), rtol=1e-12
    )


def test_relevance_does_not_depend_on_scale() -> None:
    rng = np.random.default_rng(1)
    P, X = rng.dirichlet([0.3, 0.3, 0.3], 50), rng.random((50, 6))
    before = relevance(*moments_of(X, P))
    assert before.max() > 0
    np.testing.assert_allclose(relevance(*moments_of(1e-9 * X, P)), before, rtol=1e-6)
    assert (before <= 1).all()


def test_an_almost_decayed_view_keeps_its_relevance() -> None:
    """n = 1e-170: its square is below the smallest number."""
    rng = np.random.default_rng(2)
    n, total, sums = moments_of(rng.random((50, 6)), rng.dirichlet([0.3, 0.3], 50))
    f = 1e-170
    faded = Moments(f * sums.C, f * (f * sums.C2), f * sums.Z, f * sums.q, f * (f * sums.n2))
    without_chance = Moments(sums.C, 0 * sums.C2, sums.Z, sums.q, 0.0)
    np.testing.assert_allclose(
        relevance(f * n, f * total, faded), relevance(n, total, without_chance), rtol=1e-9
    )


def test_row_norms_do_not_overflow() -> None:
    V = np.array([[3.0, 4.0], [0.0, 0.0], [3e200, 4e200], [3e-200, 4e-200]])
    expected = [5.0, 0.0, 5e200, 5e-200]
    assert row_norms(V).tolist() == pytest.approx(expected, rel=1e-12)
