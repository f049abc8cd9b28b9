"""GIMC_FLSD: generalized incomplete multi-view clustering (Wen, Zhang, Zhang, Fei, Wang 2020).

Per view, with x the unit rows (n_v × d), W the neighbour graph and D its degrees, a basis U
(c × d) with orthonormal rows and codes P (n_v × c); shared, the consensus Pc (n × c):

    min Σ_v α_v^r e_v,  Σ_v α_v = 1,
    e = Σ_ij W_ij ‖x_i − Uᵀp_j‖² + λ₁‖P − Pc[rows]‖² + λ₂‖P‖₁

Every step below finds the minimum over its own variable, so the objective never rises.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.evaluate.data import Labels, Matrix, Vector
from stream_fs.evaluate.graphs import ViewGraph, degrees, unit_rows
from stream_fs.evaluate.learn import k_means


@dataclass(frozen=True)
class GimcSettings:
    """Parameters as published for 50 % missing; one setting serves every data set."""

    pull: float = 10.0  # λ₁: how strongly a view follows the consensus
    sparsity: float = 1e-5  # λ₂
    smoothness: float = 3.0  # r > 1: larger makes the view weights more equal
    most_iterations: int = 120
    least_iterations: int = 10
    tolerance: float = 1e-7  # of the objective, divided by Σ ‖x‖²


@dataclass(frozen=True)
class GimcFit:
    """The result: consensus (n × c), per view basis (c × d) and codes (n_v × c), weights (V)."""

    consensus: Matrix
    bases: list[Matrix]
    codes: list[Matrix]
    weights: Vector
    objectives: list[float]


def gimc_flsd(views: Sequence[ViewGraph], instances: int, clusters: int, seed: int) -> Labels:
    """Cluster of every instance (n): k-means of the unit rows of the consensus."""
    fit = fit_gimc(views, instances, clusters, seed, GimcSettings())
    return k_means(unit_rows(fit.consensus), clusters, seed)


def fit_gimc(
    views: Sequence[ViewGraph], instances: int, clusters: int, seed: int, settings: GimcSettings
) -> GimcFit:
    """Iterate from a random start until the objective settles."""
    generator = np.random.default_rng(seed)
    given = [view.x.astype(np.float64) for view in views]
    weights_of_rows = [degrees(view.graph)[:, None] for view in views]
    energies = [float((d * x**2).sum()) for d, x in zip(weights_of_rows, given, strict=True)]
    starts = [_isometry(generator.random((x.shape[1], clusters))) for x in given]
    codes: list[Matrix] = [x @ basis.T for x, basis in zip(given, starts, strict=True)]
    # Every basis after the start lies in the span of the rows: with many features the same
    # iterations run in its few coordinates.
    spans = [_row_space(x) for x in given]
    xs = [x if span is None else x @ span.T for x, span in zip(given, spans, strict=True)]
    bases = starts
    consensus: Matrix = generator.random((instances, clusters))
    alpha: Vector = np.full(len(views), 1 / len(views))
    size = max(sum(float((x**2).sum()) for x in xs), 1e-12)
    objectives: list[float] = []
    while len(objectives) < settings.most_iterations:
        targets: list[Matrix] = []
        for v, (view, x, degree) in enumerate(zip(views, xs, weights_of_rows, strict=True)):
            bases[v] = _isometry(x.T @ (view.graph @ codes[v]))
            targets.append(view.graph @ (x @ bases[v].T))
            codes[v] = _codes(targets[v], consensus[view.rows], degree, settings)
        consensus = _consensus(views, codes, alpha**settings.smoothness, instances)
        losses = np.array(energies)
        for v, (view, degree) in enumerate(zip(views, weights_of_rows, strict=True)):
            losses[v] += _loss(codes[v], targets[v], consensus[view.rows], degree, settings)
        alpha = _view_weights(losses, settings.smoothness)
        objectives.append(float(alpha**settings.smoothness @ losses) / size)
        if _settled(objectives, settings):
            break
    bases = [b if span is None else b @ span for b, span in zip(bases, spans, strict=True)]
    return GimcFit(consensus, bases, codes, alpha, objectives)


def _settled(objectives: Sequence[float], settings: GimcSettings) -> bool:
    enough = len(objectives) > settings.least_iterations
    return enough and abs(objectives[-2] - objectives[-1]) < settings.tolerance


def _row_space(x: Matrix) -> Matrix | None:
    """Orthonormal rows (n × d) that span those of x; None where n is not below d."""
    if x.shape[0] >= x.shape[1]:
        return None
    return np.asarray(np.linalg.qr(x.T)[0].T)


def _isometry(a: Matrix) -> Matrix:
    """``B Gᵀ`` (c × d) of the singular value decomposition ``a = G Σ Bᵀ`` (d × c)."""
    left, _, right = np.linalg.svd(a, full_matrices=False)
    return np.asarray((left @ right).T)


def _codes(target: Matrix, pull: Matrix, degree: Matrix, settings: GimcSettings) -> Matrix:
    """``P = soft(M⁻¹ (W X Uᵀ + λ₁ Pc), λ₂ / (2 M_ii))``, ``M = D + λ₁ I``; target ``W X Uᵀ``."""
    weight = degree + settings.pull
    code = (target + settings.pull * pull) / weight
    size = np.maximum(np.abs(code) - settings.sparsity / (2 * weight), 0)
    return np.asarray(np.sign(code) * size)


def _consensus(
    views: Sequence[ViewGraph], codes: Sequence[Matrix], weights: Vector, instances: int
) -> Matrix:
    """``Pc[i] = Σ_v α_v^r P_v[i] / Σ_v α_v^r`` over the views that have instance i."""
    total = np.zeros((instances, codes[0].shape[1]))
    share = np.zeros((instances, 1))
    for view, code, weight in zip(views, codes, weights, strict=True):
        total[view.rows] += weight * code
        share[view.rows] += weight
    return np.divide(total, share, out=total, where=share > 0)


def _loss(
    code: Matrix, target: Matrix, pull: Matrix, degree: Matrix, settings: GimcSettings
) -> float:
    """``e`` without ``tr(XᵀDX)``: ``tr(PᵀDP) − 2 tr(XᵀWPU) + λ₁‖P − Pc‖² + λ₂‖P‖₁``."""
    fit = (degree * code**2).sum() - 2 * np.vdot(target, code)
    apart = ((code - pull) ** 2).sum()
    return float(fit + settings.pull * apart + settings.sparsity * np.abs(code).sum())


def _view_weights(losses: Vector, smoothness: float) -> Vector:
    """``α_v ∝ e_v^{1/(1−r)}``, summing to 1."""
    logs = np.log(np.maximum(losses, 1e-12)) / (1 - smoothness)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())
