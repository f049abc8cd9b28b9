"""Simple feature scores, the baselines of the comparison.

Each returns one score per feature and view (d_v), larger is better. Missing rows are left out where
the method allows it, otherwise they are imputed by the mean of the view.
"""

import numpy as np

from stream_fs.evaluate.datasets import IncompleteViews, Matrix, Vector
from stream_fs.evaluate.errors import UnsupportedData
from stream_fs.evaluate.graphs import Graph, degrees, heat_graph, unit_range, unit_rows
from stream_fs.evaluate.sklearn_adapter import nmf_components

GRAPH_NEIGHBOURS = 5


def random(data: IncompleteViews, generator: np.random.Generator) -> list[Vector]:
    """Uniform scores: a random order of the features."""
    return [generator.random((x.shape[1],)) for x in data.views]


def variance(data: IncompleteViews) -> list[Vector]:
    """Variance of every feature over the present rows, each scaled to unit norm."""
    return [unit_rows(data.present_rows(v)).var(axis=0) for v in range(len(data.views))]


def scaled_variance(data: IncompleteViews) -> list[Vector]:
    """Variance of every feature over the present rows, each feature scaled to [0, 1]."""
    return [unit_range(data.present_rows(v)).var(axis=0) for v in range(len(data.views))]


def laplacian(data: IncompleteViews) -> list[Vector]:
    """Laplacian score (He, Cai, Niyogi 2005) of every view, missing rows mean-imputed.

    The graph joins the 5 nearest rows with heat kernel weights. A small Laplacian score is good:
    the returned scores have the opposite sign.
    """
    scores: list[Vector] = []
    for v in range(len(data.views)):
        x = mean_imputed(data, v).astype(np.float64)
        scores.append(-laplacian_score(x, heat_graph(x, GRAPH_NEIGHBOURS)))
    return scores


def laplacian_score(x: Matrix, graph: Graph) -> Vector:
    """``f̃ᵀ L f̃ / f̃ᵀ D f̃`` of every column f of x (n × d); graph S (n × n), L = D − S.

    ``f̃ = f − (fᵀ D 1 / 1ᵀ D 1) 1``. A constant feature gets the worst score, ∞.
    """
    degree = degrees(graph)
    centred = x - (degree @ x) / degree.sum()
    variance = degree @ centred**2
    roughness = variance - np.einsum("ij,ij->j", centred, graph @ centred)
    varies = np.ptp(x, axis=0) > 0
    return np.asarray(np.divide(roughness, variance, out=np.full(x.shape[1], np.inf), where=varies))


def mini_batch_nmf(data: IncompleteViews, rank: int, seed: int) -> list[Vector]:
    """Norm of every feature's row of Hᵀ, ``[X_1 … X_V] ≈ W H``, missing rows mean-imputed.

    Rows of every view are scaled to unit norm, so that no view dominates by its units. Features
    must be non-negative.
    """
    widths = [x.shape[1] for x in data.views]
    joined = np.hstack([unit_mean_imputed(data, v) for v in range(len(widths))])
    if (joined < 0).any():
        raise UnsupportedData("MiniBatchNMF requires non-negative values")
    norms = np.linalg.norm(nmf_components(joined, rank, seed), axis=0)
    return np.split(norms, np.cumsum(widths)[:-1])


def mean_imputed(data: IncompleteViews, view: int) -> Matrix:
    """The view (n × d) with missing rows imputed by the mean of the present ones."""
    present = data.present[:, view]
    filled = data.views[view].copy()
    filled[~present] = filled[present].mean(axis=0)
    return filled


def unit_mean_imputed(data: IncompleteViews, view: int) -> Matrix:
    """Present rows scaled to unit norm, missing rows imputed by their mean (n × d)."""
    unit = IncompleteViews((unit_rows(data.views[view]),), data.present[:, [view]])
    return mean_imputed(unit, 0)
