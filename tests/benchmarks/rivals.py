"""What an update is measured against: its own products, and other ways to the same end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import MiniBatchNMF

from stream_fs.selector import Chunk, State, initial_state, update
from stream_fs.selector.arrays import SMALL
from stream_fs.selector.chunk import concatenate
from tests.benchmarks.measure import Run
from tests.reference.explicit import Explicit, ViewState

Matrix = NDArray[Any]

ASSIGNMENTS = 4
"""Assignments of a later chunk's rows: to the stored clusters, then three times again."""


def kernels(matrices: Sequence[Matrix], clusters: int, sketch: int, iterations: int) -> Run:
    """The products with the rows that the rules of an update name, one matrix (n × d) per view.

    Per view: 2·iterations + 1 of XᵀU and XV in turn, the Gram matrix, the sketch, the assignments
    and the moments Z. Each is written in the form that BLAS does fastest: the narrow factor with
    its long side contiguous, in small products row by row. The update gets the products of all
    reassignments from the Gram matrix, so that it does six narrow ones less than are counted here.
    """
    rng = np.random.default_rng(0)

    def narrow(rows: int, columns: int, like: Matrix) -> Matrix:
        return np.asfortranarray(rng.random((rows, columns)).astype(like.dtype))

    def right(X: Matrix, factor: Matrix) -> Matrix:
        small = X.size * factor.shape[1] <= SMALL
        return np.ascontiguousarray(factor) if small else factor

    inputs = [
        (
            X,
            narrow(len(X), clusters, X),
            right(X, narrow(X.shape[1], clusters, X)),
            right(X, narrow(X.shape[1], clusters + 1, X)),
            narrow(len(X), sketch, X),
        )
        for X in matrices
    ]

    def run() -> None:
        for X, U, _, means, _ in inputs:
            X @ X.T
            for _ in range(ASSIGNMENTS):
                X @ means
            for _ in range(ASSIGNMENTS - 1):
                U.T @ X
        for _ in range(iterations):
            for X, U, V, _, _ in inputs:
                U.T @ X
                X @ V
        for X, U, _, _, G in inputs:
            U.T @ X  # Q
            U.T @ X  # Z
            G.T @ X

    return run


def present_rows(chunk: Chunk) -> list[Matrix]:
    return [np.asarray(part.rows) for part in chunk.views.values()]


def all_rows(chunk: Chunk) -> list[Matrix]:
    """Every view's N × d matrix; missing rows hold the mean of the chunk's present ones."""
    filled = []
    for part in chunk.views.values():
        rows = np.asarray(part.rows)
        matrix = np.tile(rows.mean(axis=0), (chunk.size, 1))
        matrix[part.present] = rows
        filled.append(matrix)
    return filled


def explicit_imputation(state: State, chunk: Chunk) -> Run:
    """The same update from the same state by the reference, which builds every missing row.

    The reference is written to be read, in double precision. Relevance is part of the run, the
    greedy ranking is not.
    """
    views = [np.asarray(matrix, np.float64) for matrix in all_rows(chunk)]
    present = [part.present for part in chunk.views.values()]
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (chunk.size, state.params.sketch))

    def run() -> Explicit:
        model = reference_at(state)
        model.chunk(views, present, signs)
        return model

    return run


def reference_at(state: State) -> Explicit:
    """The reference, as if it had seen what the state has seen."""
    given = state.params
    model = Explicit(
        [view.dimension for view in given.views],
        given.clusters,
        depth=0,
        min_iterations=given.min_iterations,
        max_iterations=given.max_iterations,
        tolerance=given.tolerance,
    )
    model.alpha, model.j, model.total = state.alpha, state.j, state.total
    model.views = []
    for view in state.views.values():
        assert view.range is not None, "the default preset keeps ranges"
        assert view.moments is not None, "the default preset keeps moments"
        assert view.sketch is not None, "the default preset keeps a sketch"
        moments, sketch = view.moments, view.sketch
        model.views.append(
            ViewState(
                V=view.V,
                R=view.R,
                Q=view.Q,
                lo=view.range.lo,
                hi=view.range.hi,
                Z=moments.Z,
                C=moments.C,
                C2=moments.C2,
                m=view.sum,
                q=moments.q,
                Y=sketch.Y,
                g=sketch.g,
                s=view.energy,
                n=view.n,
                n2=moments.n2,
                rows=int(view.n),
            )
        )
    return model


def mini_batch_nmf(chunk: Chunk, clusters: int, passes: int, solves: int) -> Run:
    """scikit-learn on the mean-imputed concatenation: `passes` times over the chunk.

    Every pass solves for W in `solves` steps and then updates H once.
    """
    matrix = np.hstack(all_rows(chunk))
    model = MiniBatchNMF(
        clusters, batch_size=len(matrix), tol=0.0, fresh_restarts_max_iter=solves, random_state=0
    )
    model.partial_fit(matrix)

    def run() -> None:
        for _ in range(passes):
            model.partial_fit(matrix)

    return run


def from_scratch(state: State, chunks: Sequence[Chunk]) -> Run:
    """A new model that is given all rows so far as one chunk."""
    everything, blank = concatenate(chunks), initial_state(state.params)
    return lambda: update(blank, everything)
