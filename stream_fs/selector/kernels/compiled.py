"""The compiled core: arrays for the loops in C, with products of matrices by SciPy's BLAS.

Apart from the two products with the rows, a step works on matrices of N×K and K×K numbers, so small
that NumPy spends most of the time between its loops. Here a step is one call, during which other
threads can run. `make bench-selector` measures an update on either core (`STREAM_FS_CORE`) against
its products with the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

# In this form an absent extension raises ModuleNotFoundError, which `dispatch` distinguishes.
import stream_fs.selector.kernels._native as _native
from stream_fs.selector.arrays import CEILINGS, FLOORS, Floats, Indices, Scaled, Shifted, Working
from stream_fs.selector.kernels.interface import (
    ROUNDING,
    Block,
    Factors,
    Losses,
    Rival,
    Terms,
    ViewProblem,
)
from stream_fs.selector.steps import EPSILON, UStepConstants, row_lengths

SOURCE_DIGEST = _native.source_digest


@dataclass(frozen=True, slots=True, eq=False)
class ViewArrays:
    """One view's arrays as the loops take them: by row, and those of `Working` in one precision.

    The rows are dense (n×d), or None and in CSR. V and Q₀ are transposed (K×d), `lengths` are the
    row norms of V; U is beside W̃U (N×2K), UᵀU beside UᵀW̃U (K×2K). The loops write to these four and
    to the consensus.
    """

    xi: float
    eta: float
    rows: Working | None
    row_starts: NDArray[np.int64] | None
    row_columns: NDArray[np.int32] | None
    row_values: Working | None
    present: NDArray[np.uint8]
    share: Working
    fit_weights: Working
    beta_W: Working
    diagonal: Working
    consensus_share: Working
    beta_W_total: Working
    theta_starts: NDArray[np.int32]
    theta_columns: NDArray[np.int32]
    theta_S: Working
    R0: Floats
    Q0: Working
    S0: Working
    V: Working
    lengths: Working
    U: Working
    products: Working
    consensus: Working


class CompiledIteration:
    """Starts from `U` (views×N×K) and each view's V; `repeats` V and U steps in every step.

    Everything is in the precision of U, which must be that of the rows.
    """

    def __init__(
        self,
        problems: Sequence[ViewProblem],
        constants: UStepConstants,
        U: Working,
        start: Sequence[Working],
        repeats: int,
    ) -> None:
        count, _, K = U.shape
        self._problems, self._repeats = problems, repeats
        self._limits = EPSILON, FLOORS[U.dtype], CEILINGS[U.dtype]
        # U beside W̃U: one product gives UᵀU and UᵀW̃U, another one 2ξUUᵀU + aW̃UVᵀV.
        self._U = np.concatenate([U, np.zeros_like(U)], axis=2)
        self._products = np.zeros((count, K, 2 * K), U.dtype)
        self._consensus = np.zeros_like(U[0])
        self._V = [np.array(V.T, U.dtype, order="C") for V in start]
        self._bound = _native.BoundViews(
            [self._arrays(v, constants) for v in range(len(problems))],
        )

    def step(self, a: Sequence[float]) -> Terms:
        """Update V of every view, U of every view and U*."""
        regularisers = self._bound.step(a, self._repeats, *self._limits)
        chunk, carried, sparsity = [], [], 0.0
        for problem, result in zip(self._problems, self._bound.results(), strict=True):
            chunk.append(problem.energy + result[0])
            carried.append(problem.energy0 + result[1])
            sparsity += problem.eta * result[2]
        return Terms(Losses(chunk, carried), regularisers, sparsity)

    def factors(self) -> Factors:
        """The factors after the last step."""
        K = self._consensus.shape[1]
        return Factors(
            U=np.ascontiguousarray(self._U[:, :, :K]),
            UtU=self._products[:, :, :K],
            UtWU=self._products[:, :, K:],
            V=[V.T for V in self._V],
            consensus=self._consensus,
        )

    def _arrays(self, v: int, constants: UStepConstants) -> ViewArrays:
        problem, theta_S = self._problems[v], constants.theta_S[v]
        data = problem.data
        present = np.zeros(data.size, np.uint8)
        present[data.at] = 1
        return ViewArrays(
            xi=constants.xi,
            eta=problem.eta,
            **_rows(data.rows),
            present=present,
            share=data.share,
            fit_weights=constants.fit_weights[v, :, 0],
            beta_W=constants.beta_W[v, :, 0],
            diagonal=constants.diagonal[v, :, 0],
            consensus_share=constants.consensus_share[v, :, 0],
            beta_W_total=constants.beta_W_total[:, 0],
            theta_starts=theta_S.indptr.astype(np.int32, copy=False),
            theta_columns=theta_S.indices.astype(np.int32, copy=False),
            theta_S=theta_S.data,
            R0=problem.R0,
            Q0=problem.Q0.T,
            S0=data.carried,
            V=self._V[v],
            lengths=row_lengths(self._V[v].T),
            U=self._U[v],
            products=self._products[v],
            consensus=self._consensus,
        )


def _rows(rows: Scaled) -> dict[str, Any]:
    """The rows as they are stored, dense or in CSR."""
    if isinstance(rows, Shifted):
        raise TypeError("the compiled core does not take shifted rows")
    if isinstance(rows, np.ndarray):
        csr = dict.fromkeys(("row_starts", "row_columns", "row_values"))
        return {"rows": np.ascontiguousarray(rows), **csr}
    return {
        "rows": None,
        "row_starts": rows.indptr.astype(np.int64, copy=False),
        "row_columns": rows.indices.astype(np.int32, copy=False),
        "row_values": rows.data,
    }


def nearest_rows(products: Working, neighbours: int) -> Indices:
    """See `fallback.nearest_rows`; other threads can run meanwhile. Needs no other n×n matrix."""
    n = len(products)
    k = min(neighbours, n - 1)
    nearest = np.empty((n, max(k, 0)), np.int64)
    if nearest.size:
        squares = np.diagonal(products).astype(np.float64)
        _native.nearest_rows(np.ascontiguousarray(products), squares, np.empty(k), nearest)
    return nearest.astype(np.intp, copy=False)


def choose_features(block: Block, rival: Rival, most: int) -> Indices:
    """See `fallback.choose_features`; other threads can run meanwhile."""
    size = len(block.scores)
    taken = np.empty(min(most, size), np.int64)
    count = _native.choose_features(
        np.ascontiguousarray(block.squares),
        np.ascontiguousarray(block.scores),
        block.features.astype(np.int64, copy=False),
        block.nearest.copy(),
        np.empty(size),
        *(block.chance, ROUNDING, rival.worth, rival.feature),
        taken,
    )
    return taken[:count].astype(np.intp, copy=False)
