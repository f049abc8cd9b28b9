"""What a core computes: the iterations of a chunk, its nearest rows, the choice of features."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from stream_fs.selector.arrays import Floats, Indices, Working
from stream_fs.selector.imputation import Imputed

ROUNDING = 1e-5
"""Novelty that is only rounding of single precision: a copy must not be worth anything."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewProblem:
    """One view's data of a chunk and the sums before it; constant during the iterations.

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
        """Energy of all data so far, this chunk included."""
        return self.energy0 + self.energy


@dataclass(frozen=True, slots=True, eq=False)
class Losses:
    """Per view: `chunk` = ‖W(X − UVᵀ)‖² of this chunk, `carried` that of V over earlier data."""

    chunk: Sequence[float]
    carried: Sequence[float]


@dataclass(frozen=True, slots=True, eq=False)
class Terms:
    """The terms of the objective after a step.

    `regularisers` = Σ_v β‖W(U − U*)‖² + θ tr(UᵀLU) + ξ‖UᵀU − I‖², `sparsity` = Σ_v η‖V‖_{2,1}.
    """

    losses: Losses
    regularisers: float
    sparsity: float


@dataclass(frozen=True, slots=True, eq=False)
class Factors:
    """U of all views (views×N×K), UᵀU and UᵀW̃U (views×K×K), each view's V (d×K), and U* (N×K)."""

    U: Working
    UtU: Working
    UtWU: Working
    V: Sequence[Working]
    consensus: Working


class Iteration(Protocol):
    """The factors of a chunk during its iterations.

    The U steps of different views do not depend on one another. A step takes two products with each
    view's rows.
    """

    def step(self, a: Sequence[float]) -> Terms:
        """Update V of every view, U of every view and U*; `a` weighs each view's first term."""

    def factors(self) -> Factors:
        """The factors after the last step."""


class Rival(NamedTuple):
    """The best feature outside of a block, and what it is worth."""

    worth: float
    feature: int


class Block(NamedTuple):
    """Features to choose from, n of them in the order of their indices.

    `squares` (n×n, single precision) is cos² of every feature with every other, `nearest` (n,) with
    the most similar feature chosen before, `chance` the cos² that counts as no redundancy.
    """

    scores: Floats
    features: Indices
    squares: Working
    nearest: Working
    chance: float
