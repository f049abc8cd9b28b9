"""The judges: two clusterings of incomplete views, and the agreement of clusters with classes.

A judge takes `view_graphs` of raw or of scaled features, the number of instances, the number of
clusters and a seed, and returns a cluster for every instance (n), the same for the same seed. The
judges have only the neighbour graphs in common. Matrices of instances × instances are sparse.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.linalg import eigh

from stream_fs.evaluate.datasets import Labels, Matrix, Vector
from stream_fs.evaluate.graphs import Graph, ViewGraph, degrees, unit_rows
from stream_fs.evaluate.sklearn_adapter import adjusted_rand, k_means, mutual_information
from stream_fs.selector.eigenvectors import sparse_eigenvectors

Judge: TypeAlias = Callable[[Sequence[ViewGraph], int, int, int], Labels]
"""From graphs, number of instances, number of clusters and seed to the clusters (n)."""

DENSE_LIMIT = 500
"""Up to this number of instances, eigenvectors come from the dense solver."""


@dataclass(frozen=True)
class Agreement:
    """NMI, ARI and F of one clustering."""

    nmi: float
    ari: float
    f: float


def agreement(classes: Labels, clusters: Labels) -> Agreement:
    """All measures of ``clusters`` (n) compared with ``classes`` (n)."""
    return Agreement(
        nmi=mutual_information(classes, clusters),
        ari=adjusted_rand(classes, clusters),
        f=f_measure(classes, clusters),
    )


def f_measure(classes: Labels, clusters: Labels) -> float:
    """Mean F of the clusters with their majority classes, clusters unweighted.

    ``2PR/(P+R) = 2 n_ij / (n_i + m_j)``. Of classes that tie for the majority, the one with the
    larger F counts.
    """
    counts = contingency(classes, clusters)
    sizes = counts.sum(axis=1, keepdims=True) + counts.sum(axis=0, keepdims=True)
    majority = counts == counts.max(axis=1, keepdims=True)
    return float(np.where(majority, 2 * counts / sizes, 0.0).max(axis=1).mean())


def contingency(classes: Labels, clusters: Labels) -> NDArray[np.int64]:
    """``n_ij``: instances of class j in cluster i (clusters × classes), without empty ones."""
    rows, row = np.unique(clusters, return_inverse=True)
    columns, column = np.unique(classes, return_inverse=True)
    counts = np.zeros((len(rows), len(columns)), dtype=np.int64)
    np.add.at(counts, (row, column), 1)
    return counts


# GIMC_FLSD (Wen, Zhang, Zhang, Fei, Wang 2020)


@dataclass(frozen=True)
class GimcSettings:
    """Parameters as published for 50 % missing; one setting serves every data set."""

    lambda1: float = 10.0
    """λ₁, weight of the distance between a view's codes and the consensus."""
    lambda2: float = 1e-5
    """λ₂, weight of the codes' absolute values."""
    r: float = 3.0
    """Exponent of the view weights, above 1; a larger one makes them more equal."""
    max_iterations: int = 120
    min_iterations: int = 10
    tolerance: float = 1e-7
    """Of the change of the objective, divided by Σ ‖x‖²."""


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
    """Iterate from a random start until the objective changes by less than the tolerance."""
    generator = np.random.default_rng(seed)
    given = [view.x.astype(np.float64) for view in views]
    row_degrees = [degrees(view.graph)[:, None] for view in views]
    energies = [float((d * x**2).sum()) for d, x in zip(row_degrees, given, strict=True)]
    starts = [_isometry(generator.random((x.shape[1], clusters))) for x in given]
    codes: list[Matrix] = [x @ basis.T for x, basis in zip(given, starts, strict=True)]
    # Every basis after the start lies in the span of the rows: with many features, the iterations
    # run in the coordinates of that span.
    spans = [_row_space(x) for x in given]
    xs = [x if span is None else x @ span.T for x, span in zip(given, spans, strict=True)]
    bases = starts
    consensus: Matrix = generator.random((instances, clusters))
    alpha: Vector = np.full(len(views), 1 / len(views))
    size = max(sum(float((x**2).sum()) for x in xs), 1e-12)
    objectives: list[float] = []
    while len(objectives) < settings.max_iterations:
        targets: list[Matrix] = []
        for v, (view, x, degree) in enumerate(zip(views, xs, row_degrees, strict=True)):
            bases[v] = _isometry(x.T @ (view.graph @ codes[v]))
            targets.append(view.graph @ (x @ bases[v].T))
            codes[v] = _codes(targets[v], consensus[view.rows], degree, settings)
        consensus = _consensus(views, codes, alpha**settings.r, instances)
        losses = np.array(energies)
        for v, (view, degree) in enumerate(zip(views, row_degrees, strict=True)):
            losses[v] += _loss(codes[v], targets[v], consensus[view.rows], degree, settings)
        alpha = _view_weights(losses, settings.r)
        objectives.append(float(alpha**settings.r @ losses) / size)
        if _converged(objectives, settings):
            break
    bases = [b if span is None else b @ span for b, span in zip(bases, spans, strict=True)]
    return GimcFit(consensus, bases, codes, alpha, objectives)


def _converged(objectives: Sequence[float], settings: GimcSettings) -> bool:
    enough = len(objectives) > settings.min_iterations
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


def _codes(target: Matrix, consensus: Matrix, degree: Matrix, settings: GimcSettings) -> Matrix:
    """``P = soft(M⁻¹ (W X Uᵀ + λ₁ Pc), λ₂ / (2 M_ii))``, ``M = D + λ₁ I``; target ``W X Uᵀ``."""
    weight = degree + settings.lambda1
    code = (target + settings.lambda1 * consensus) / weight
    size = np.maximum(np.abs(code) - settings.lambda2 / (2 * weight), 0)
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
    code: Matrix, target: Matrix, consensus: Matrix, degree: Matrix, settings: GimcSettings
) -> float:
    """``e`` without ``tr(XᵀDX)``: ``tr(PᵀDP) − 2 tr(XᵀWPU) + λ₁‖P − Pc‖² + λ₂‖P‖₁``."""
    fit = (degree * code**2).sum() - 2 * np.vdot(target, code)
    distance = ((code - consensus) ** 2).sum()
    return float(fit + settings.lambda1 * distance + settings.lambda2 * np.abs(code).sum())


def _view_weights(losses: Vector, r: float) -> Vector:
    """``α_v ∝ e_v^{1/(1−r)}``, summing to 1."""
    logs = np.log(np.maximum(losses, 1e-12)) / (1 - r)
    weights = np.exp(logs - logs.max())
    return np.asarray(weights / weights.sum())


# Spectral clustering of the summed graphs


def spectral(views: Sequence[ViewGraph], instances: int, clusters: int, seed: int) -> Labels:
    """Spectral clustering (Ng, Jordan, Weiss) of the sum S of the views' graphs.

    k-means of the rows, scaled to unit norm, of the ``clusters`` leading eigenvectors of
    ``D^-½ S D^-½``. An instance without edges has a zero row.
    """
    total = sum_graphs(views, instances)
    degree = degrees(total)
    root = np.divide(1, np.sqrt(degree), out=np.zeros_like(degree), where=degree > 0)
    scale = sparse.diags_array(root)
    normal = sparse.csr_array(scale @ total @ scale)
    return k_means(unit_rows(_leading(normal, clusters, seed)), clusters, seed)


def sum_graphs(views: Sequence[ViewGraph], instances: int) -> Graph:
    """Sum of the views' graphs over all instances (n × n)."""
    total: Graph = sparse.csr_array((instances, instances), dtype=np.float64)
    for view in views:
        edges = view.graph.tocoo()
        place = (view.rows[edges.row], view.rows[edges.col])
        total = total + sparse.csr_array((edges.data, place), shape=total.shape)
    return total


def _leading(graph: Graph, count: int, seed: int) -> Matrix:
    """Eigenvectors (n × count) of the largest eigenvalues of a symmetric graph."""
    n = graph.shape[0]
    if n <= max(DENSE_LIMIT, 4 * count):
        return np.asarray(eigh(graph.toarray(), subset_by_index=(n - count, n - 1))[1])
    source = np.random.default_rng(seed)
    return sparse_eigenvectors(graph, count, source.standard_normal(n), max(4 * count, 40), source)


JUDGES: Mapping[str, Judge] = {"gimc": gimc_flsd, "spectral": spectral}
