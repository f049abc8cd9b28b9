"""What the iterations of a chunk work on, and what each of their turns ends with."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from stream_fs.selector.arrays import Floats, Working
from stream_fs.selector.imputation import Imputed


@dataclass(frozen=True, slots=True, eq=False)
class Problem:
    """One view's data of a chunk and what is carried into it; constant during the iterations.

    `energy` is this chunk's Σw²‖x‖²; `R0` (K×K), `Q0` (d×K, in the precision of the rows, stored by
    column), `energy0` and `loss0` are the sums before the chunk.
    """

    data: Imputed
    energy: float
    R0: Floats
    Q0: Working
    energy0: float
    loss0: float
    eta: float

    @property
    def total_energy(self) -> float:
        """Energy of everything so far, this chunk included."""
        return self.energy0 + self.energy


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Per view: `chunk` = ‖W(X − UVᵀ)‖² of this chunk, `carried` that of V over earlier data."""

    chunk: Sequence[float]
    carried: Sequence[float]


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms of the objective after a turn.

    `apart` = Σ_v β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖², `sparsity` = Σ_v η‖V‖_{2,1}.
    """

    losses: Losses
    apart: float
    sparsity: float


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """U of all views (views×N×K), `own` = UᵀU and `inner` = UᵀW̃U (views×K×K), each V, and U*."""

    U: Working
    own: Working
    inner: Working
    V: Sequence[Working]
    consensus: Working


class Turns(Protocol):
    """U, V and U* of a chunk on their way: V of every view, U of every view, U*, and again.

    The U steps of different views do not depend on one another. There are two products with each
    view's rows in a turn.
    """

    def turn(self, a: Sequence[float]) -> Terms:
        """Update V, U and U* once, with the weight `a` of each view's first term."""

    def factors(self) -> Factors:
        """Where they are now."""
