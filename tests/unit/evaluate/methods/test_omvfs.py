from dataclasses import replace

import numpy as np
import pytest

from stream_fs.evaluate.methods import baselines
from stream_fs.evaluate.methods.omvfs import (
    Omvfs,
    OmvfsSettings,
    kernel,
    omvfs_scores,
    roughness,
)
from stream_fs.evaluate.protocol import Trial
from tests.support.planted_views import planted_views

NEVER_SETTLED = OmvfsSettings(tolerance=0, iterations=40, orthogonality=1.0)


def fitted(chunks: int, settings: OmvfsSettings = NEVER_SETTLED) -> list[Omvfs]:
    """The model after every chunk, each in its own copy."""
    data, _ = planted_views()
    filled = [baselines.unit_mean_imputed(data, v) for v in range(3)]
    after = []
    for stop in range(1, chunks + 1):
        model = Omvfs(4, seed=0, settings=settings)
        for chunk in range(stop):
            model.fit_chunk([x[chunk * 40 : (chunk + 1) * 40] for x in filled])
        after.append(model)
    return after


@pytest.mark.parametrize("graph", [0.0, 0.1, 5.0])
@pytest.mark.parametrize("chunk", [0, 2])
def test_the_objective_falls_in_every_chunk(chunk: int, graph: float) -> None:
    objectives = fitted(3, replace(NEVER_SETTLED, graph=graph))[chunk].objectives
    assert len(objectives) == 40
    assert (np.diff(objectives) <= 1e-9 * np.abs(objectives[:-1])).all()
    assert objectives[-1] < objectives[0]


def test_the_sums_are_those_of_the_chunks_so_far() -> None:
    data, _ = planted_views()
    filled = [baselines.unit_mean_imputed(data, v) for v in range(3)]
    model = fitted(2)[1]
    assert [a.shape for a in model.sums] == [(24, 4)] * 3
    assert len(model.buffer_U) == 80  # both chunks fit into the buffer of 100
    U = model.buffer_U
    np.testing.assert_allclose(model.inner, U[:40].T @ U[:40] + U[40:].T @ U[40:])
    for a, x in zip(model.sums, filled, strict=True):
        np.testing.assert_allclose(a, x[:40].T @ U[:40] + x[40:80].T @ U[40:])


def test_the_buffer_keeps_the_latest_rows() -> None:
    model = fitted(4, OmvfsSettings(buffer=50, iterations=2))[3]
    data, _ = planted_views()
    filled = baselines.unit_mean_imputed(data, 0)
    np.testing.assert_array_equal(model.buffer[0], filled[110:160])


def test_the_kernel_is_gaussian_and_has_no_loops() -> None:
    x = np.array([[0.0, 0.0], [1.0, 0.0]])
    found = kernel(x, np.vstack([[[0.0, 2.0]], x]))
    near, far = np.exp(-0.5), np.exp(-2.0)
    np.testing.assert_allclose(found, [[far, 0, near], [np.exp(-2.5), near, 0]])


def test_roughness_is_the_weighted_sum_of_squared_distances() -> None:
    generator = np.random.default_rng(0)
    U, W, S = generator.random((3, 2)), generator.random((4, 2)), generator.random((3, 4))
    expected = sum(S[i, j] * ((U[i] - W[j]) ** 2).sum() for i in range(3) for j in range(4))
    assert roughness(U, W, S) == pytest.approx(expected)


def test_planted_features_come_first() -> None:
    data, _ = planted_views()
    for scores in omvfs_scores(Trial(data, 4, 0)):
        assert float((scores[:12, None] > scores[None, 12:]).mean()) > 0.9


def test_strong_sparsity_shrinks_the_factors() -> None:
    weak, strong = (
        sum(float(s.sum()) for s in fitted(1, OmvfsSettings(sparsity=b))[0].scores())
        for b in (0.01, 10.0)
    )
    assert strong < 0.9 * weak
