"""OMVFS: online unsupervised multi-view feature selection (Shao, He, Lu, Wei, Yu 2016).

One indicator U (N × K) for all views of a chunk, V (d × K) per view:

    min  Σ_v ‖X_v − U V_vᵀ‖² + α tr(Uᵀ L_v U) + β ‖V_v‖_{2,1}  +  γ/2 ‖UᵀU − I‖²,   U, V ≥ 0

Earlier chunks enter through V and the sums ``A_v = Σ X_vᵀ U`` and ``B = Σ UᵀU``; the graph of a
full Gaussian kernel (σ = 1) also joins the rows of a chunk to a buffer of the latest earlier ones,
whose U is fixed. Rows have unit norm, missing ones are mean-imputed. The score of a feature is the
norm of its row in V.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from stream_fs.evaluate.datasets import Matrix, Vector
from stream_fs.evaluate.errors import UnsupportedData
from stream_fs.evaluate.methods import baselines
from stream_fs.evaluate.protocol import Trial, chunks

TINY = 1e-12


@dataclass(frozen=True)
class OmvfsSettings:
    """Parameters, the same for every data set."""

    graph: float = 0.1  # α
    sparsity: float = 0.1  # β
    orthogonality: float = 10.0  # γ
    iterations: int = 50
    tolerance: float = 1e-4
    buffer: int = 100  # rows


@dataclass
class Omvfs:
    """The state of the method; `fit_chunk` takes complete views (N × d_v each)."""

    clusters: int
    seed: int
    settings: OmvfsSettings = field(default_factory=OmvfsSettings)
    factors: list[Matrix] = field(default_factory=list)
    sums: list[Matrix] = field(default_factory=list)  # A_v
    inner: Matrix = field(default_factory=lambda: np.zeros((0, 0)))  # B
    buffer: list[Matrix] = field(default_factory=list)
    buffer_U: Matrix = field(default_factory=lambda: np.zeros((0, 0)))
    objectives: list[float] = field(default_factory=list)
    """Objective of the latest chunk after every iteration."""

    def __post_init__(self) -> None:
        self._generator = np.random.default_rng(self.seed)

    def fit_chunk(self, views: Sequence[Matrix]) -> None:
        """Update with a chunk: V and U in turn until the objective converges, then the sums."""
        if any((x < 0).any() for x in views):
            raise UnsupportedData("OMVFS requires non-negative values")
        if not self.factors:
            self._initialise(views)
        rows = len(views[0])
        U: Matrix = self._generator.random((rows, self.clusters))
        U /= np.linalg.norm(U, axis=0)
        kernels = [
            kernel(x, np.vstack([old, x])) for x, old in zip(views, self.buffer, strict=True)
        ]
        self.objectives = []
        for _ in range(self.settings.iterations):
            self._update_V(views, U)
            U = self._update_U(views, kernels, U)
            self.objectives.append(self._objective(views, kernels, U))
            if self._converged():
                break
        self.sums = [a + x.T @ U for a, x in zip(self.sums, views, strict=True)]
        self.inner = self.inner + U.T @ U
        keep = self.settings.buffer
        self.buffer = [
            np.vstack([old, x])[-keep:] for x, old in zip(views, self.buffer, strict=True)
        ]
        self.buffer_U = np.vstack([self.buffer_U, U])[-keep:]

    def scores(self) -> list[Vector]:
        """Row norms of V (d_v each)."""
        return [np.linalg.norm(V, axis=1) for V in self.factors]

    def _initialise(self, views: Sequence[Matrix]) -> None:
        k = self.clusters
        self.factors = [self._generator.random((x.shape[1], k)) for x in views]
        self.sums = [np.zeros((x.shape[1], k)) for x in views]
        self.inner = np.zeros((k, k))
        self.buffer = [np.zeros((0, x.shape[1])) for x in views]
        self.buffer_U = np.zeros((0, k))

    def _update_V(self, views: Sequence[Matrix], U: Matrix) -> None:
        B = self.inner + U.T @ U
        for v, (x, V) in enumerate(zip(views, self.factors, strict=True)):
            A = self.sums[v] + x.T @ U
            penalty = self.settings.sparsity / 2 / (np.linalg.norm(V, axis=1, keepdims=True) + TINY)
            self.factors[v] = V * np.sqrt(A / (V @ B + penalty * V + TINY))

    def _update_U(self, views: Sequence[Matrix], kernels: Sequence[Matrix], U: Matrix) -> Matrix:
        up = self.settings.orthogonality * U
        down = self.settings.orthogonality * U @ (U.T @ U) + TINY
        all_U = np.vstack([self.buffer_U, U])
        for x, V, S in zip(views, self.factors, kernels, strict=True):
            up = up + x @ V + self.settings.graph * (S @ all_U)
            down = down + U @ (V.T @ V) + self.settings.graph * S.sum(axis=1, keepdims=True) * U
        return np.asarray(U * np.sqrt(up / down))

    def _objective(self, views: Sequence[Matrix], kernels: Sequence[Matrix], U: Matrix) -> float:
        """The minimised function of U and V, without the constant energy of earlier rows."""
        all_U = np.vstack([self.buffer_U, U])
        old = len(self.buffer_U)
        gram = U.T @ U
        total = self.settings.orthogonality / 2 * float(((gram - np.eye(len(gram))) ** 2).sum())
        for v, (x, V, S) in enumerate(zip(views, self.factors, kernels, strict=True)):
            total += float(((x - U @ V.T) ** 2).sum())
            total += float(np.vdot(V.T @ V, self.inner) - 2 * np.vdot(V, self.sums[v]))
            graph = roughness(U, all_U[:old], S[:, :old]) + roughness(U, U, S[:, old:]) / 2
            total += self.settings.graph * graph
            total += self.settings.sparsity * float(np.linalg.norm(V, axis=1).sum())
        return total

    def _converged(self) -> bool:
        if len(self.objectives) < 2:
            return False
        previous, latest = self.objectives[-2:]
        return abs(previous - latest) <= self.settings.tolerance * abs(previous)


def roughness(U: Matrix, W: Matrix, S: Matrix) -> float:
    """``Σ_ij S_ij ‖u_i − w_j‖²``."""
    ends = S.sum(axis=1) @ (U**2).sum(axis=1) + S.sum(axis=0) @ (W**2).sum(axis=1)
    return float(ends - 2 * np.vdot(U, S @ W))


def kernel(x: Matrix, others: Matrix) -> Matrix:
    """``exp(−‖x_i − y_j‖²/2)`` of rows x (N × d) and the others, the last N of which are x.

    A row has no edge to itself.
    """
    squares = (x**2).sum(axis=1)[:, None] + (others**2).sum(axis=1) - 2 * x @ others.T
    weights = np.exp(-np.maximum(squares, 0) / 2)
    weights[np.arange(len(x)), np.arange(len(x)) + len(others) - len(x)] = 0
    return np.asarray(weights)


def omvfs_scores(trial: Trial) -> list[Vector]:
    """Scores of OMVFS after the whole stream."""
    model = Omvfs(trial.clusters, trial.seed)
    views = imputed_views(trial)
    for rows in chunks(trial.instances, trial.clusters):
        model.fit_chunk([x[rows] for x in views])
    return model.scores()


def imputed_views(trial: Trial) -> list[Matrix]:
    """The complete views that OMVFS takes: unit rows, missing ones mean-imputed (n × d_v each)."""
    count = len(trial.data.views)
    return [baselines.unit_mean_imputed(trial.data, v).astype(np.float64) for v in range(count)]
