"""The turns of a chunk's iterations in numpy: everywhere available, and the one to read."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_fs.selector.arrays import Working, frobenius
from stream_fs.selector.imputation import product, transposed_product
from stream_fs.selector.problem import Factors, Losses, Problem, Terms
from stream_fs.selector.steps import (
    Ties,
    consensus_step,
    drive,
    indicator_terms,
    indicators,
    row_lengths,
    u_step,
    v_step,
)


class NumpyTurns:
    """Starts from `U` (views×N×K) and each view's V; `repeats` V and U steps in every turn."""

    def __init__(
        self,
        problems: Sequence[Problem],
        tied: Ties,
        U: Working,
        start: Sequence[Working],
        repeats: int,
    ) -> None:
        tied = tied.repeated(U.shape[2])
        self._problems, self._tied, self._repeats = problems, tied, repeats
        self._V = [
            V.astype(problem.data.rows.dtype, order="F")
            for problem, V in zip(problems, start, strict=True)
        ]
        self._lengths = [row_lengths(V) for V in self._V]
        self._now = indicators(U, tied)
        self._consensus = consensus_step(U, tied)
        self._XV, self._VtV = np.empty_like(U), np.empty_like(self._now.own)

    def turn(self, a: Sequence[float]) -> Terms:
        """V of every view, U of every view, U*."""
        tied = self._tied
        for v, problem in enumerate(self._problems):
            self._update_V(v, a[v])
            product(problem.data, self._V[v], out=self._XV[v])
            self._VtV[v] = self._V[v].T @ self._V[v]
        weights = np.array(a, self._XV.dtype)[:, None, None]
        driving, aVtV = drive(self._XV, self._consensus, weights, tied), self._VtV * weights
        for _ in range(self._repeats):
            self._now = indicators(u_step(self._now, driving, aVtV, tied), tied)
        losses = self._losses()
        self._consensus = consensus_step(self._now.U, tied)
        sparsity = sum(
            problem.eta * float(lengths.sum())
            for problem, lengths in zip(self._problems, self._lengths, strict=True)
        )
        return Terms(losses, indicator_terms(self._now, self._consensus, tied), sparsity)

    def factors(self) -> Factors:
        """U, V and U* after the last turn."""
        now = self._now
        return Factors(now.U, now.own, now.inner, self._V, self._consensus)

    def _update_V(self, v: int, a: float) -> None:
        """Several V steps on the same product with the rows."""
        problem = self._problems[v]
        Q = transposed_product(problem.data, self._now.U[v])
        Q += problem.Q0  # Eq. 11
        R = (problem.R0 + self._now.inner[v]).astype(Q.dtype)
        for _ in range(self._repeats):
            self._V[v] = v_step(self._V[v], self._lengths[v], Q, R, a, problem.eta)
            self._lengths[v] = row_lengths(self._V[v])

    def _losses(self) -> Losses:
        """The loss of every view: of this chunk from W̃XV, of earlier ones from their sums."""
        chunk, carried = [], []
        for v, problem in enumerate(self._problems):
            VtV = self._VtV[v]
            fitted = 2 * float(np.vdot(self._XV[v], self._now.U[v]))
            chunk.append(problem.energy - fitted + float(np.vdot(VtV, self._now.inner[v])))
            fitted = 2 * frobenius(self._V[v], problem.Q0)
            carried.append(problem.energy0 - fitted + float(np.vdot(VtV, problem.R0)))
        return Losses(chunk, carried)
