import numpy as np
import pytest
from scipy import sparse

from stream_fs.evaluate.datasets import IncompleteViews, Vector
from stream_fs.evaluate.methods import baselines
from tests.support.planted_views import planted_views


def share_of_informative_above_noise(scores: Vector) -> float:
    """Area under the curve: the first 12 features are informative, the rest noise."""
    return float((scores[:12, None] > scores[None, 12:]).mean())


def test_laplacian_score_equals_the_textbook_formula() -> None:
    generator = np.random.default_rng(0)
    x = generator.standard_normal((9, 4))
    s = generator.random((9, 9)) * (generator.random((9, 9)) < 0.5)
    s = np.triu(s, 1) + np.triu(s, 1).T
    d = np.diag(s.sum(axis=1))
    one = np.ones(9)
    expected = []
    for f in x.T:
        centred = f - (f @ d @ one) / (one @ d @ one) * one
        expected.append((centred @ (d - s) @ centred) / (centred @ d @ centred))
    found = baselines.laplacian_score(x, sparse.csr_array(s))
    np.testing.assert_allclose(found, expected)


def test_a_constant_feature_has_the_worst_laplacian_score() -> None:
    x = np.column_stack([np.arange(4.0), np.full(4, 0.1)])
    found = baselines.laplacian_score(x, sparse.csr_array(np.ones((4, 4)) - np.eye(4)))
    assert found[1] == np.inf
    assert np.isfinite(found[0])


@pytest.mark.parametrize("method", ["variance", "laplacian", "nmf"])
def test_planted_features_come_first(method: str) -> None:
    data, _ = planted_views()
    scores = {
        "variance": lambda: baselines.variance(data),
        "laplacian": lambda: baselines.laplacian(data),
        "nmf": lambda: baselines.mini_batch_nmf(data, rank=4, seed=0),
    }[method]()
    for of_view in scores:
        assert of_view.shape == (24,)
        assert share_of_informative_above_noise(of_view) > 0.9


def test_random_scores_follow_the_generator() -> None:
    data, _ = planted_views()
    first, again, other = (
        np.concatenate(baselines.random(data, np.random.default_rng(seed))) for seed in (1, 1, 2)
    )
    assert (first == again).all()
    assert (first != other).any()


def test_missing_rows_take_the_mean_of_the_present_ones() -> None:
    view = np.array([[1.0, 4.0], [np.nan, np.nan], [3.0, 0.0]])
    data = IncompleteViews((view,), np.array([[True], [False], [True]]))
    assert baselines.mean_imputed(data, 0).tolist() == [[1, 4], [2, 2], [3, 0]]
    assert np.isnan(view[1]).all()  # the data itself stays as it was


def test_variance_is_that_of_unit_rows() -> None:
    view = np.array([[3.0, 4.0], [30.0, 40.0], [0.0, 2.0], [9.0, 9.0]])
    data = IncompleteViews((view,), np.array([[True], [True], [True], [False]]))
    np.testing.assert_allclose(
        baselines.variance(data)[0], [np.var([0.6, 0.6, 0]), np.var([0.8, 0.8, 1])]
    )


def test_scaled_variance_does_not_depend_on_units() -> None:
    view = np.array([[1.0, 10.0], [3.0, 30.0], [2.0, 20.0], [9.0, 9.0]])
    data = IncompleteViews((view,), np.array([[True], [True], [True], [False]]))
    np.testing.assert_allclose(baselines.scaled_variance(data)[0], [np.var([0, 1, 0.5])] * 2)
