"""The turns of a chunk's iterations with their small loops in C (turn.c).

Apart from the two products with the rows, a turn works on matrices of N×K and K×K numbers, so small
that numpy spends most of the time between its loops. `make bench-selector` measures an update on
either core (`STREAM_FS_CORE`) against its products with the rows.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stream_fs.selector import library
from stream_fs.selector.arrays import CEILINGS, FLOORS, Rows, Working, cross, times
from stream_fs.selector.problem import Factors, Losses, Problem, Terms
from stream_fs.selector.updates import EPSILON, Ties, row_lengths


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
        self._library, self._floor = library.turns(U.dtype), FLOORS[U.dtype]
        self._limits = EPSILON, self._floor, CEILINGS[U.dtype]
        # U beside W̃U: one product gives UᵀU and UᵀW̃U, another one 2ξUUᵀU + aW̃UVᵀV.
        self._both = np.concatenate([U, np.zeros_like(U)], axis=2)
        self._transposed = self._both[:, :, :K].transpose(0, 2, 1)
        self._products = np.zeros((count, K, 2 * K), U.dtype)
        self._right = np.zeros((count, 2 * K, K), U.dtype)
        self._P, self._consensus = np.zeros_like(U), np.zeros_like(U[0])
        self._arrays = [
            {
                **_constants(problem, tied, v),
                **_factor(problem, V),
                **_indicator(U.dtype, size, len(problem.data.at), K),
                "both": self._both[v],
                "products": self._products[v],
                "right": self._right[v],
                "P": self._P[v],
                "consensus": self._consensus,
            }
            for v, (problem, V) in enumerate(zip(problems, start, strict=True))
        ]
        self._factors = [
            _Factor(problem.data.rows, arrays)
            for problem, arrays in zip(problems, self._arrays, strict=True)
        ]
        views = (library.View * count)()
        for view, problem, arrays in zip(views, problems, self._arrays, strict=True):
            view.N, view.n, view.d, view.K = size, *problem.data.rows.shape, K
            view.xi, view.eta = tied.xi, problem.eta
            library.point(view, arrays)
        self._views = views, count
        self._library.hold(*self._views)
        self._multiply()
        self._library.agree(*self._views)

    def turn(self, a: Sequence[float]) -> Terms:
        """V of every view, U of every view, U*."""
        views, weights = self._views, (ctypes.c_double * len(a))(*a)
        loops, factors = self._library, self._factors
        loops.spread(*views)
        for its in factors:
            cross(its.rows, its.left, out=its.Q)
        loops.carry(*views)
        for _ in range(self._repeats):
            for its in factors:
                np.matmul(its.R, its.Vt, out=its.VR)
            loops.v_step(*views, weights, *self._limits)
        for its in factors:
            np.matmul(its.Vt, its.V, out=its.VtV)
            np.matmul(its.Vt, its.S0, out=its.S0V)
            times(its.rows, its.V, out=its.XV)
        loops.drive(*views, weights)
        for _ in range(self._repeats):
            np.matmul(self._both, self._right, out=self._P)
            loops.u_step(*views, self._floor)
            self._multiply()
        return self._terms(loops.agree(*views))

    def factors(self) -> Factors:
        """U, V and U* after the last turn."""
        K = self._consensus.shape[1]
        return Factors(
            U=np.ascontiguousarray(self._both[:, :, :K]),
            own=self._products[:, :, :K],
            inner=self._products[:, :, K:],
            V=[its.V for its in self._factors],
            consensus=self._consensus,
        )

    def _multiply(self) -> None:
        np.matmul(self._transposed, self._both, out=self._products)
        self._library.square(*self._views)

    def _terms(self, apart: float) -> Terms:
        chunk, carried, sparsity = [], [], 0.0
        for problem, view in zip(self._problems, self._views[0], strict=True):
            chunk.append(problem.energy + view.loss)
            carried.append(problem.energy0 + view.carried)
            sparsity += problem.eta * view.length
        return Terms(Losses(chunk, carried), apart, sparsity)


class _Factor:
    """The matrices of one view that are multiplied between the loops."""

    __slots__ = ("Q", "R", "S0", "S0V", "V", "VR", "Vt", "VtV", "XV", "left", "rows")

    def __init__(self, rows: Rows, arrays: Mapping[str, Any]) -> None:
        self.rows, self.left, self.S0 = rows, arrays["left"], arrays["S0"]
        self.Vt, self.VR, self.VtV = arrays["V"], arrays["VR"], arrays["VtV"]
        self.V, self.Q, self.R = self.Vt.T, arrays["Q"].T, arrays["R"].T
        self.S0V, self.XV = arrays["terms"][0], arrays["terms"][1:]


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
        "XV": (size, K),
        "driving": (size, K),
        "pulled": (size, K),
        "sum": (K,),
    }
    arrays = {name: np.zeros(shape, precision) for name, shape in shapes.items()}
    return {**arrays, "sums": np.zeros(2 * K)}
