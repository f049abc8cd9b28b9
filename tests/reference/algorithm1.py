"""The paper's Algorithm 1, literally: features × instances, imputed columns built.

A chunk of view v is ``X`` (d × N), ``X ≈ V Uᵀ`` with the latent features ``V`` (d × K) and the
indicator ``U`` (N × K).  Everything is dense float64; nothing here is meant to be fast.  The
functions for a single step are also used by :mod:`.explicit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float64]
Mask = NDArray[np.bool_]

TINY = float(np.finfo(np.float64).tiny)
EPSILON = 1e-12


# --- imputation and graph -----------------------------------------------------------------------


def impute(
    X: Matrix, present: Mask, total: Matrix, n: float, j: float
) -> tuple[Matrix, NDArray[np.float64]]:
    """Eq. 3-4: columns of missing instances become the running mean, weighted ``n_j / j``.

    ``X`` (d × N), of which only the columns in ``present`` (N) are read; ``total`` (d) and ``n``
    are the sum and the number of the instances present in earlier chunks, ``j`` the number of
    all earlier instances.  Returns the imputed matrix (d × N) and the weights ``w`` (N).
    """
    filled = np.zeros(X.shape)
    weights = np.zeros(X.shape[1])
    total = total.copy()
    for i in range(X.shape[1]):
        j += 1
        if present[i]:
            total += X[:, i]
            n += 1
            filled[:, i] = X[:, i]
            weights[i] = 1.0
        elif n > 0:
            filled[:, i] = total / n
            weights[i] = n / j
    return filled, weights


def neighbour_graph(X: Matrix, present: Mask, neighbours: int) -> Matrix:
    """Symmetric k-NN heat-kernel similarities ``S`` (N × N) among the present columns of ``X``.

    The width is the mean squared distance over the neighbours of all present instances.  Equal
    distances are taken in the order of the instances from ``i`` on, and round.  If the width is
    zero every edge weighs 1.
    """
    S = np.zeros((len(present), len(present)))
    rows = np.flatnonzero(present)
    k = min(neighbours, len(rows) - 1)
    if k < 1:
        return S
    edges: list[tuple[int, int, float]] = []
    for i in rows:
        others = np.concatenate([rows[rows > i], rows[rows < i]])
        distances = ((X[:, others] - X[:, [i]]) ** 2).sum(axis=0)
        nearest = np.argsort(distances, kind="stable")[:k]
        edges += [(int(i), int(others[m]), float(distances[m])) for m in nearest]
    width = float(np.mean([distance for _, _, distance in edges]))
    for one, other, distance in edges:
        S[one, other] = np.exp(-distance / width) if width > 0 else 1.0
    return np.maximum(S, S.T)


# --- the four steps -----------------------------------------------------------------------------


def multiply(F: Matrix, numerator: Matrix, denominator: Matrix) -> Matrix:
    """``F ∘ sqrt(numerator / denominator)``; a zero of ``F`` stays zero, nothing overflows."""
    return F * (np.sqrt(numerator) / np.sqrt(np.maximum(denominator, TINY)))


def update_V(V: Matrix, Q: Matrix, R: Matrix, coefficient: float, eta: float) -> Matrix:
    """Eq. 12, with ``coefficient`` for ``α^λ``."""
    H = np.diag(1.0 / (np.linalg.norm(V, axis=1) + EPSILON))
    return multiply(V, 2 * coefficient * Q, 2 * coefficient * V @ R + eta * H @ V)


def update_U(
    U: Matrix,
    X: Matrix,
    V: Matrix,
    consensus: Matrix,
    S: Matrix,
    fit: NDArray[np.float64],
    agree: NDArray[np.float64],
    coefficient: float,
    beta: float,
    theta: float,
    xi: float,
) -> Matrix:
    """Eq. 15; ``fit`` and ``agree`` (N) are the squared weights of the first and second term."""
    F, A, D = np.diag(fit), np.diag(agree), np.diag(S.sum(axis=1))
    G = coefficient * F @ X.T @ V + beta * A @ consensus + 2 * xi * U + theta * S @ U
    P = coefficient * F @ U @ V.T @ V + beta * A @ U + 2 * xi * U @ U.T @ U + theta * D @ U
    return multiply(U, G, P)


def update_consensus(U: Sequence[Matrix], agree: Sequence[NDArray[np.float64]]) -> Matrix:
    """Eq. 20 with one β for all views, which cancels; ``agree`` are the squared weights."""
    weighted = sum((np.diag(a) @ u for u, a in zip(U, agree, strict=True)), np.zeros(U[0].shape))
    total = sum(agree, np.zeros(len(U[0])))
    return np.diag(1.0 / np.maximum(total, TINY)) @ weighted


def view_shares(losses: NDArray[np.float64], lam: float) -> NDArray[np.float64]:
    """Eq. 21: shares proportional to ``L^{1/(1-λ)}``, in logarithms; losses are positive."""
    logarithms = np.log(losses) / (1.0 - lam)
    powers = np.exp(logarithms - logarithms.max())
    return np.asarray(powers / powers.sum())


def admit(alpha: NDArray[np.float64], seen: Mask, taking_part: Mask) -> NDArray[np.float64]:
    """Give views seen for the first time 1 / (views seen by now) each; scale the others down."""
    new = taking_part & ~seen
    each = 1.0 / max(int((seen | taking_part).sum()), 1)
    return np.asarray(np.where(new, each, alpha * (1.0 - new.sum() * each)))


# --- the objective ------------------------------------------------------------------------------


def chunk_loss(X: Matrix, U: Matrix, V: Matrix, fit: NDArray[np.float64]) -> float:
    """``‖(X − V Uᵀ) W‖²_F`` of one chunk, ``fit = W²``."""
    return float((((X - V @ U.T) ** 2) @ np.diag(fit)).sum())


def indicator_terms(
    U: Matrix,
    consensus: Matrix,
    S: Matrix,
    agree: NDArray[np.float64],
    beta: float,
    theta: float,
    xi: float,
) -> float:
    """``β‖W(U − U*)‖² + θ tr(Uᵀ L U) + ξ‖UᵀU − I‖²`` of one view in one chunk."""
    L = np.diag(S.sum(axis=1)) - S
    agreement = (np.diag(agree) @ (U - consensus) ** 2).sum()
    orthogonality = ((U.T @ U - np.eye(U.shape[1])) ** 2).sum()
    return float(beta * agreement + theta * np.trace(U.T @ L @ U) + xi * orthogonality)


def row_norms(V: Matrix) -> NDArray[np.float64]:
    """The paper's score of the features; their sum is ``‖V‖_{2,1}``."""
    return np.asarray(np.linalg.norm(V, axis=1))


def converged(objective: Sequence[float], minimum: int, tolerance: float) -> bool:
    """Whether the last iteration changed the chunk's objective by at most ``tolerance``."""
    if len(objective) < max(minimum, 2):
        return False
    before, now = objective[-2:]
    return abs(now - before) <= tolerance * abs(before)


# --- one chunk ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Params:
    lam: float
    beta: float
    theta: float
    eta: float
    xi: float
    classical: bool = False
    neighbours: int = 5
    min_iterations: int = 10
    max_iterations: int = 50
    tolerance: float = 1e-4


@dataclass
class ViewState:
    """What is carried of one view: ``loss`` is the sum of the losses of earlier chunks."""

    V: Matrix
    R: Matrix
    Q: Matrix
    total: NDArray[np.float64]
    n: float = 0.0
    s: float = 0.0
    loss: float = 0.0


@dataclass
class State:
    views: list[ViewState]
    alpha: NDArray[np.float64]
    j: int = 0


@dataclass
class Result:
    """Per view ``V``, ``U``, ``R``, ``Q``, ``s`` and ``scores``; a view not yet seen keeps V."""

    V: list[Matrix]
    U: list[Matrix]
    consensus: Matrix
    alpha: NDArray[np.float64]
    R: list[Matrix]
    Q: list[Matrix]
    s: list[float]
    scores: list[NDArray[np.float64]]
    objective: list[float] = field(default_factory=list)

    @property
    def iterations(self) -> int:
        return len(self.objective)


def empty_state(dims: Sequence[int], clusters: int) -> State:
    """The state before the first chunk; :func:`chunk` then takes V from its argument."""
    views = [
        ViewState(
            V=np.zeros((d, clusters)),
            R=np.zeros((clusters, clusters)),
            Q=np.zeros((d, clusters)),
            total=np.zeros(d),
        )
        for d in dims
    ]
    return State(views, np.zeros(len(views)))


def chunk(
    state: State,
    X: list[Matrix],
    present: list[Mask],
    V0: list[Matrix] | None,
    U0: list[Matrix],
    params: Params,
) -> tuple[State, Result]:
    """Algorithm 1 for one chunk: per view ``X`` (d × N), ``V0`` (d × K), ``U0`` (N × K).

    ``V0`` is read for the first chunk of the stream only.
    """
    p = params
    if state.j == 0:
        if V0 is None:
            raise ValueError("the first chunk needs a start for V")
        started = [replace(w, V=V.astype(float)) for w, V in zip(state.views, V0, strict=True)]
        state = replace(state, views=started)
    if not np.any(present, axis=0).all():
        raise ValueError("a record must have at least one view")
    seen = np.array([view.n > 0 for view in state.views])
    taking_part = seen | np.array([mask.any() for mask in present])
    members = [int(v) for v in np.flatnonzero(taking_part)]
    alpha = admit(state.alpha, seen, taking_part)

    filled: dict[int, Matrix] = {}
    agree: dict[int, NDArray[np.float64]] = {}
    fit: dict[int, NDArray[np.float64]] = {}
    S: dict[int, Matrix] = {}
    s: dict[int, float] = {}
    for v in members:
        view = state.views[v]
        if (X[v][:, present[v]] < 0).any():
            raise ValueError("values must not be negative")
        filled[v], weights = impute(X[v], present[v], view.total, view.n, state.j)
        agree[v] = weights**2
        fit[v] = present[v].astype(np.float64) if p.classical else agree[v]
        S[v] = neighbour_graph(X[v], present[v], p.neighbours)
        s[v] = view.s + float((filled[v] ** 2 @ np.diag(fit[v])).sum())

    V = {v: state.views[v].V.copy() for v in members}
    U = {v: U0[v].astype(np.float64) for v in members}
    R: dict[int, Matrix] = {}
    Q: dict[int, Matrix] = {}
    loss: dict[int, float] = {}

    def statistics(v: int) -> None:  # Eq. 11
        R[v] = state.views[v].R + U[v].T @ np.diag(fit[v]) @ U[v]
        Q[v] = state.views[v].Q + filled[v] @ np.diag(fit[v]) @ U[v]

    def coefficient(v: int) -> float:
        return 1.0 if p.classical else float(alpha[v] ** p.lam)

    def consensus_of_views() -> Matrix:
        return update_consensus([U[v] for v in members], [agree[v] for v in members])

    consensus = consensus_of_views()
    objective: list[float] = []
    while len(objective) < p.max_iterations:
        for v in members:
            statistics(v)
            V[v] = update_V(V[v], Q[v], R[v], coefficient(v), p.eta)
            U[v] = update_U(
                U[v], filled[v], V[v], consensus, S[v], fit[v], agree[v], coefficient(v),
                p.beta, p.theta, p.xi,
            )  # fmt: skip
        consensus = consensus_of_views()
        loss = {v: chunk_loss(filled[v], U[v], V[v], fit[v]) for v in members}
        if not p.classical:
            accumulated = [max(state.views[v].loss + loss[v], 1e-12 * s[v], TINY) for v in members]
            alpha[members] = view_shares(np.array(accumulated), p.lam)
        objective.append(
            sum(
                coefficient(v) * loss[v]
                + indicator_terms(U[v], consensus, S[v], agree[v], p.beta, p.theta, p.xi)
                + p.eta * float(row_norms(V[v]).sum())
                for v in members
            )
        )
        if converged(objective, p.min_iterations, p.tolerance):
            break

    views = list(state.views)
    for v in members:
        statistics(v)
        views[v] = ViewState(
            V=V[v],
            R=R[v],
            Q=Q[v],
            total=state.views[v].total + X[v][:, present[v]].sum(axis=1),
            n=state.views[v].n + float(present[v].sum()),
            s=s[v],
            loss=state.views[v].loss + loss[v],
        )
    after = State(views, alpha, state.j + len(consensus))
    result = Result(
        V=[view.V for view in views],
        U=[U.get(v, U0[v]) for v in range(len(views))],
        consensus=consensus,
        alpha=alpha,
        R=[view.R for view in views],
        Q=[view.Q for view in views],
        s=[view.s for view in views],
        scores=[row_norms(view.V) for view in views],
        objective=objective,
    )
    return after, result


class Algorithm1:
    """Feeds chunks, given as instances × features, to :func:`chunk`.

    ``settings`` are the remaining fields of :class:`Params`: neighbours and iteration limits.
    """

    def __init__(
        self,
        dims: Sequence[int],
        clusters: int,
        *,
        lam: float,
        beta: float,
        theta: float,
        eta: float,
        xi: float = 1e3,
        classical: bool = False,
        **settings: Any,
    ) -> None:
        self.params = Params(lam, beta, theta, eta, xi, classical, **settings)
        self.state = empty_state(dims, clusters)

    def chunk(
        self,
        views: list[Matrix],
        present: list[Mask],
        start_V: list[Matrix] | None,
        start_U: list[Matrix],
    ) -> Result:
        """Process ``views`` (N × d each); ``start_V`` (d × K each) is read the first time only."""
        columns = [
            np.where(mask, np.asarray(x, dtype=np.float64).T, 0.0)
            for x, mask in zip(views, present, strict=True)
        ]
        self.state, result = chunk(self.state, columns, present, start_V, start_U, self.params)
        return result
