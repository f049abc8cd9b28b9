"""The judges: ways to cluster incomplete views that share nothing but the neighbour graphs.

A judge takes ``view_graphs`` of raw or of scaled features, the number of instances, the number of
clusters and a seed, and returns a cluster for every instance (n); the same for the same seed.
No matrix of instances × instances is built but sparse ones.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TypeAlias

import numpy as np
from scipy import sparse
from scipy.linalg import eigh

from stream_fs.evaluate.data import Labels, Matrix
from stream_fs.evaluate.gimc import gimc_flsd
from stream_fs.evaluate.graphs import Graph, ViewGraph, degrees, unit_rows
from stream_fs.evaluate.learn import k_means
from stream_fs.selector.eigenvectors import sparse_eigenvectors

DENSE_LIMIT = 500

Judge: TypeAlias = Callable[[Sequence[ViewGraph], int, int, int], Labels]


def spectral(views: Sequence[ViewGraph], instances: int, clusters: int, seed: int) -> Labels:
    """Spectral clustering (Ng, Jordan, Weiss) of the sum S of the views' graphs.

    The rows of the ``clusters`` leading eigenvectors of ``D^-½ S D^-½`` get unit norm and go to
    k-means. An instance without edges has a zero row.
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
