"""The turns of a chunk's iterations in C (turn.c), with products of matrices by SciPy's BLAS.

Apart from the two products with the rows, a turn works on matrices of N×K and K×K numbers, so small
that numpy spends most of the time between its loops. Here a turn is one call, during which other
threads of Python can work. `make bench-selector` measures an update on either core
(`STREAM_FS_CORE`) against its products with the rows.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from stream_fs.selector import library
from stream_fs.selector.arrays import CEILINGS, FLOORS, Scaled, Shifted, Working
from stream_fs.selector.problem import Factors, Losses, Problem, Terms
from stream_fs.selector.steps import EPSILON, Ties, row_lengths


class CompiledTurns:
    """Starts from `U` (views×N×K) and each view's V; `repeats` V and U steps in every turn.

    Everything is in the precision of U, which must be that of the rows.
    """

    def __init__(
        self,
        problems: Sequence[Problem],
        tied: Ties,
        U: Working,
        start: Sequence[Working],
        repeats: int,
    ) -> None:
        count, size, K = U.shape
        self._problems, self._repeats = problems, repeats
        self._library, self._gemm = library.turns(U.dtype), library.gemm(U.dtype)
        self._limits = EPSILON, FLOORS[U.dtype], CEILINGS[U.dtype]
        # U beside W̃U: one product gives UᵀU and UᵀW̃U, another one 2ξUUᵀU + aW̃UVᵀV.
        self._both = np.concatenate([U, np.zeros_like(U)], axis=2)
        self._products = np.zeros((count, K, 2 * K), U.dtype)
        self._consensus = np.zeros_like(U[0])
        self._arrays = [
            {
                **_rows(problem.data.rows),
                **_constants(problem, tied, v),
                **_factor(problem, V),
                **_indicator(U.dtype, size, len(problem.data.at), K),
                "both": self._both[v],
                "products": self._products[v],
                "consensus": self._consensus,
            }
            for v, (problem, V) in enumerate(zip(problems, start, strict=True))
        ]
        self._views = (library.View * count)()
        for view, problem, arrays in zip(self._views, problems, self._arrays, strict=True):
            view.N, view.n, view.d, view.K = size, *problem.data.rows.shape, K
            view.xi, view.eta = tied.xi, problem.eta
            library.point(view, arrays)
        self._weights = (ctypes.c_double * count)()
        self._library.begin(self._views, count, self._gemm)

    def turn(self, a: Sequence[float]) -> Terms:
        """V of every view, U of every view, U*."""
        self._weights[:] = a
        apart = self._library.turn(
            self._views, len(a), self._gemm, self._weights, self._repeats, *self._limits
        )
        chunk, carried, sparsity = [], [], 0.0
        for problem, view in zip(self._problems, self._views, strict=True):
            chunk.append(problem.energy + view.loss)
            carried.append(problem.energy0 + view.carried)
            sparsity += problem.eta * view.length
        return Terms(Losses(chunk, carried), apart, sparsity)

    def factors(self) -> Factors:
        """U, V and U* after the last turn."""
        K = self._consensus.shape[1]
        return Factors(
            U=np.ascontiguousarray(self._both[:, :, :K]),
            own=self._products[:, :, :K],
            inner=self._products[:, :, K:],
            V=[arrays["V"].T for arrays in self._arrays],
            consensus=self._consensus,
        )


def _rows(rows: Scaled) -> dict[str, Any]:
    """The rows as they lie, dense or in CSR."""
    if isinstance(rows, Shifted):
        raise TypeError("the compiled core does not take shifted rows")
    if isinstance(rows, np.ndarray):
        dense = np.ascontiguousarray(rows)
        return {"rows": dense, **dict.fromkeys(("row_starts", "row_columns", "row_values"))}
    return {
        "rows": None,
        "row_starts": rows.indptr.astype(np.int64, copy=False),
        "row_columns": rows.indices.astype(np.int32, copy=False),
        "row_values": rows.data,
    }


def _constants(problem: Problem, tied: Ties, v: int) -> dict[str, Any]:
    """What stays as it is during a chunk."""
    data, size = problem.data, problem.data.size
    present = np.zeros(size, bool)
    present[data.at] = True
    springs = tied.springs[v]
    return {
        "present": present,
        "share": data.share,
        **{name: getattr(tied, name)[v] for name in ("fit", "pull", "still", "part")},
        "norm": tied.norm,
        "starts": springs.indptr.astype(np.int32, copy=False),
        "columns": springs.indices.astype(np.int32, copy=False),
        "springs": springs.data,
        "R0": problem.R0,
        "Q0": problem.Q0.T,
        "S0": data.carried,
    }


def _factor(problem: Problem, start: Working) -> dict[str, Any]:
    """V, by column, and what its step needs."""
    V = np.array(start.T, problem.Q0.dtype, order="C")
    K, d = V.shape
    return {
        "V": V,
        "Q": np.zeros_like(V),
        "VR": np.zeros_like(V),
        "across": np.zeros_like(V),
        "lengths": row_lengths(V.T),
        "penalties": np.zeros(d, V.dtype),
        "R": np.zeros((K, K), V.dtype),
        "VtV": np.zeros((K, K), V.dtype),
    }


def _indicator(precision: Any, size: int, present: int, K: int) -> dict[str, Any]:
    """What the step of U needs."""
    shapes = {
        "left": (present, K),
        "g": (K,),
        "terms": (present + 1, K),
        "right": (2 * K, K),
        **dict.fromkeys(("XV", "driving", "P", "pulled"), (size, K)),
        "sum": (K,),
    }
    arrays = {name: np.zeros(shape, precision) for name, shape in shapes.items()}
    return {**arrays, "sums": np.zeros(2 * K)}
