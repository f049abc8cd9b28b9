"""Nearest-neighbour graphs of rows, and the scaling of rows and columns.

Neighbours are computed in blocks of rows, without an n × n matrix in memory.
"""

from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from stream_fs.evaluate.datasets import IncompleteViews, Matrix, Vector

Graph: TypeAlias = "sparse.csr_array[Any, tuple[int, int]]"

NEIGHBOURS = 7
BLOCK_ENTRIES = 4_000_000


@dataclass(frozen=True)
class ViewGraph:
    """A view's present instances ``rows`` (n_v), unit rows ``x`` (n_v × d), graph (n_v × n_v)."""

    rows: NDArray[np.intp]
    x: Matrix
    graph: Graph


def view_graphs(
    data: IncompleteViews, *, scaled: bool, neighbours: int = NEIGHBOURS
) -> list[ViewGraph]:
    """Cosine graphs of the present rows of every view; ``scaled`` maps features to [0, 1] first."""
    graphs: list[ViewGraph] = []
    for v in range(len(data.views)):
        x = data.present_rows(v)
        unit = unit_rows(unit_range(x) if scaled else x)
        graphs.append(ViewGraph(data.rows(v), unit, cosine_graph(unit, neighbours)))
    return graphs


def unit_rows(x: Matrix) -> Matrix:
    """Rows of x (n × d) divided by their Euclidean norm; zero rows remain zero."""
    norms = np.linalg.norm(x, axis=1, keepdims=True)
    return np.asarray(np.divide(x, norms, out=np.zeros_like(x), where=norms > 0))


def unit_range(x: Matrix) -> Matrix:
    """Columns of x (n × d) mapped to [0, 1] by their minimum and maximum; constants become 0."""
    low = x.min(axis=0)
    width = x.max(axis=0) - low
    return np.asarray(np.divide(x - low, width, out=np.zeros_like(x), where=width > 0))


def nearest_rows(x: Matrix, k: int) -> tuple[NDArray[np.intp], Matrix]:
    """The k nearest other rows of every row of x (n × d), and their squared distances.

    Both are n × k, k at most n − 1, in no particular order within a row.
    """
    n = len(x)
    k = min(k, n - 1)
    squares = np.einsum("ij,ij->i", x, x)
    indices = np.empty((n, k), dtype=np.intp)
    distances = np.empty((n, k), dtype=x.dtype)
    step = max(1, BLOCK_ENTRIES // n)
    for start in range(0, n, step):
        block = np.arange(start, min(start + step, n))
        # ½‖x_i − x_j‖² without its constant ½‖x_i‖², which does not change the order
        distance = squares / 2 - x[block] @ x.T
        distance[np.arange(len(block)), block] = np.inf
        near = np.argpartition(distance, k - 1, axis=1)[:, :k] if k else indices[block]
        indices[block] = near
        half = np.take_along_axis(distance, near, axis=1)
        distances[block] = np.maximum(2 * half + squares[block, None], 0)
    return indices, distances


def cosine_graph(unit: Matrix, k: int) -> Graph:
    """Symmetrised binary graph ``(W + Wᵀ)/2`` (n × n) of the k nearest among unit rows (n × d).

    The nearest of unit rows have the largest cosine. The nearest of a zero row are the other zero
    rows; a zero row is nearer to a unit row than unit rows at more than 60°.
    """
    n = len(unit)
    neighbours, _ = nearest_rows(unit, k)
    row = np.repeat(np.arange(n), neighbours.shape[1])
    edges = (np.ones(len(row)), (row, neighbours.ravel()))
    directed = sparse.csr_array(edges, shape=(n, n))
    return sparse.csr_array((directed + directed.T) / 2)


def heat_graph(x: Matrix, k: int) -> Graph:
    """Symmetric k-nearest-neighbour graph (n × n) with heat kernel weights.

    ``S_ij = exp(−‖x_i − x_j‖² / σ)`` if i is among the k nearest of j or j among those of i;
    σ is the mean squared distance of neighbours.
    """
    n = len(x)
    neighbours, distances = nearest_rows(x, k)
    width = float(distances.mean()) or 1.0
    weights = np.exp(-distances.ravel().astype(np.float64) / width)
    row = np.repeat(np.arange(n), neighbours.shape[1])
    directed = sparse.csr_array((weights, (row, neighbours.ravel())), shape=(n, n))
    return sparse.csr_array(directed.maximum(directed.T))


def degrees(graph: Graph) -> Vector:
    """Row sums (n)."""
    return np.asarray(graph.sum(axis=1), dtype=np.float64).reshape(-1)
