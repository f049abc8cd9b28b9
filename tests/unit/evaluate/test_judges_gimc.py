import numpy as np
import pytest

from stream_fs.evaluate.datasets import Matrix
from stream_fs.evaluate.graphs import ViewGraph, view_graphs
from stream_fs.evaluate.judges import GimcFit, GimcSettings, fit_gimc
from tests.support.planted_views import planted_views

SETTINGS = GimcSettings(lambda1=0.7, lambda2=0.05, r=2.5, tolerance=0, max_iterations=40)


def fitted(settings: GimcSettings) -> tuple[list[ViewGraph], GimcFit]:
    data, labels = planted_views(informative=4)
    views = view_graphs(data, scaled=False)
    return views, fit_gimc(views, len(labels), 4, 0, settings)


def explicit_loss(view: ViewGraph, basis: Matrix, code: Matrix, consensus: Matrix) -> float:
    """``Σ_ij W_ij ‖x_i − Uᵀp_j‖² + λ₁‖P − Pc‖² + λ₂‖P‖₁``, term by term."""
    distances = ((view.x[:, None] - code @ basis) ** 2).sum(axis=2)
    smooth = (view.graph.toarray() * distances).sum()
    return float(
        smooth
        + SETTINGS.lambda1 * ((code - consensus) ** 2).sum()
        + SETTINGS.lambda2 * np.abs(code).sum()
    )


def test_the_objective_is_that_of_the_definition() -> None:
    views, fit = fitted(SETTINGS)
    losses = [
        explicit_loss(view, basis, code, fit.consensus[view.rows])
        for view, basis, code in zip(views, fit.bases, fit.codes, strict=True)
    ]
    size = sum(float((view.x**2).sum()) for view in views)
    assert fit.objectives[-1] == pytest.approx(fit.weights**2.5 @ losses / size)


def test_the_objective_never_rises() -> None:
    _, fit = fitted(SETTINGS)
    assert len(fit.objectives) == 40
    assert (np.diff(fit.objectives) <= 1e-12).all()
    assert fit.objectives[-1] < 0.9 * fit.objectives[0]


def test_codes_minimise_their_part_of_the_objective() -> None:
    # Once settled, no small change of a view's codes may lower its loss.
    views, fit = fitted(GimcSettings(0.7, 0.05, 2.5, max_iterations=2000, tolerance=0))
    generator = np.random.default_rng(1)
    for view, basis, code in zip(views, fit.bases, fit.codes, strict=True):
        consensus = fit.consensus[view.rows]
        best = explicit_loss(view, basis, code, consensus)
        for _ in range(20):
            step = 1e-3 * generator.standard_normal(code.shape)
            assert explicit_loss(view, basis, code + step, consensus) > best


def test_bases_are_orthonormal_and_weights_sum_to_one() -> None:
    _, fit = fitted(SETTINGS)
    for basis in fit.bases:
        np.testing.assert_allclose(basis @ basis.T, np.eye(4), atol=1e-12)
    assert fit.weights.sum() == pytest.approx(1)


def test_a_better_view_weighs_more() -> None:
    data, labels = planted_views(informative=24, noise=0)
    data.views[2][:] = np.random.default_rng(0).random(data.views[2].shape) ** 8
    fit = fit_gimc(view_graphs(data, scaled=False), len(labels), 4, 0, GimcSettings())
    assert fit.weights.argmin() == 2


def test_iteration_stops_when_the_objective_settles() -> None:
    _, fit = fitted(GimcSettings(tolerance=1e-4))
    assert 10 < len(fit.objectives) < 120
    assert abs(fit.objectives[-1] - fit.objectives[-2]) < 1e-4
