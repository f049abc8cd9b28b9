"""Imputation of missing rows (Eq. 3–4), without materialising them.

If the j-th instance of the stream lacks a view, the view is imputed by the running mean of its
present instances so far, with weight w_j = n_j/j. With S₀ the sum carried into the chunk, every
product with such a row is a prefix or suffix sum over the chunk's present rows; only those are
touched, and sparse rows stay sparse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stream_fs.selector.arrays import (
    Floats,
    Indices,
    Mask,
    Scaled,
    Working,
    cross,
    row_square_sums,
    times,
)
from stream_fs.selector.parameters import Weights


@dataclass(frozen=True, slots=True)
class Imputation:
    """How a chunk's missing rows of one view were imputed.

    `rows` counts those that took part in the fit with a weight above 0: all missing rows after the
    first present one of the stream. `weight` is n/j at the end of the chunk (Eq. 4), decay
    included: the weight of a row that were missing there. Both are 0 where `weights` is `binary`.
    """

    rows: int
    weight: float


@dataclass(frozen=True, slots=True, eq=False)
class Imputed:
    """A view's rows of one chunk, the missing ones implied.

    `rows` (n × d) are the present ones, at the positions `at` (n,) of the chunk's N rows; the
    missing ones are at `gaps` (N−n,), each with `before` present rows of this chunk ahead of it;
    `after` (n,) counts the missing rows ahead of each present one.
    `quality` (N,) is W̃ = W² of Eq. 4; `fit` (N,) the weights of the first term, which are the same
    unless missing rows are to count nothing there; `c` (N−n,) = fit_j/n_j. `carried` (d,) is S₀.
    `source` and `share` (N,) are index and factor of the term that `product` uses for a row.
    """

    rows: Scaled
    at: Indices
    gaps: Indices
    before: Indices
    after: Indices
    quality: Floats
    fit: Floats
    c: Working
    carried: Working
    source: Indices
    share: Working

    @property
    def size(self) -> int:
        """N, missing rows included."""
        return len(self.quality)


def impute(
    rows: Scaled, present: Mask, carried: Floats, n: float, j: float, weights: Weights
) -> Imputed:
    """Weights of the chunk's rows, after `n` present ones among `j` instances (Eq. 3–4)."""
    at, gaps = np.flatnonzero(present), np.flatnonzero(~present)
    counted = np.cumsum(present, dtype=np.intp)
    before, after = counted[gaps], at - counted[at] + 1
    n_j = n + before
    arrived = j + gaps + 1.0
    quality = np.ones(len(present))
    quality[gaps] = (n_j / arrived) ** 2
    c = np.zeros(len(gaps)) if weights == "binary" else n_j / arrived**2
    fit = quality if weights == "quality" else present.astype(np.float64)
    source, share = np.empty(len(present), np.intp), np.ones(len(present), rows.dtype)
    source[at], source[gaps] = 1 + np.arange(len(at)), 1 + len(at) + before
    share[gaps] = c
    return Imputed(
        rows=rows,
        at=at,
        gaps=gaps,
        before=before,
        after=after,
        quality=quality,
        fit=fit,
        c=c.astype(rows.dtype),
        carried=carried.astype(rows.dtype),
        source=source,
        share=share,
    )


def imputed_rows(view: Imputed) -> int:
    """Number of missing rows with a weight above 0 in the first term."""
    return int(np.count_nonzero(view.fit[view.gaps]))


def transposed_product(view: Imputed, U: Working) -> Working:
    """XᵀW̃U, (d×K): X_pᵀ(U_p + T_p) + S₀gᵀ, in the precision of the rows, stored by column.

    T_i = Σ_{missing j after i} c_j u_j is a suffix sum; g = Σ_missing c_j u_j is its first row.
    """
    U = U.astype(view.rows.dtype, copy=False)
    if not len(view.gaps):
        return cross(view.rows, U)
    spread = U.take(view.gaps, axis=0)
    spread *= view.c[:, None]
    suffix = np.zeros((len(view.gaps) + 1, U.shape[1]), U.dtype)
    np.add.accumulate(spread[::-1], axis=0, out=suffix[-2::-1])
    left = U.take(view.at, axis=0)
    left += suffix.take(view.after, axis=0)
    result = cross(view.rows, left)
    result += (suffix[0][:, None] * view.carried).T
    return result


def product(view: Imputed, V: Working, out: Working | None = None) -> Working:
    """W̃XV, (N×K): a missing row is c_j (S₀ᵀV + Σ_{present i<j} x_iᵀV)."""
    result = np.empty((view.size, V.shape[1]), V.dtype) if out is None else out
    if not len(view.gaps):
        result[:] = times(view.rows, V)
        return result
    # What a row can be made of: S₀ᵀV and the present rows of XV, then the sums down to each.
    terms = np.empty((2, len(view.at) + 1, V.shape[1]), V.dtype)
    terms[0, 0] = view.carried @ V
    times(view.rows, V, out=terms[0, 1:])
    np.add.accumulate(terms[0], axis=0, out=terms[1])
    taken = terms.reshape(-1, V.shape[1]).take(view.source, axis=0)
    return np.multiply(taken, view.share[:, None], out=result)


def energy(view: Imputed, gram: Working, centre: Working) -> float:
    """Σ_j w_j²‖x_j‖² of the chunk, the missing rows' share from the Gram matrix and X_p S₀.

    `gram` (n×n) has the products of y = x − o, o the `centre`:
    ⟨x_p, x_i⟩ = ⟨y_p, y_i⟩ + b_p + b_i + ‖o‖² with b = ⟨y, o⟩ = ⟨x, o⟩ − ‖o‖².
    """
    squares = row_square_sums(view.rows)
    total = float(squares.sum())
    if not np.any(view.c):
        return total
    carried, o = view.carried.astype(np.float64), centre.astype(np.float64)
    b = times(view.rows, centre) - o @ o
    # ‖S₀ + x_1 + … + x_p‖², step by step: each new row adds its square and twice its products.
    earlier = _below_diagonal(gram)
    earlier += np.arange(len(b)) * (b + o @ o) + np.cumsum(b) - b
    steps = squares + 2 * (earlier + times(view.rows, view.carried))
    norms = np.maximum(np.concatenate([[0.0], np.cumsum(steps)]) + carried @ carried, 0.0)
    # c_j/n_j = c_j²/fit_j; where n_j has decayed to almost nothing, fit_j is zero before c_j is.
    fit = view.fit[view.gaps]
    roots = np.sqrt(np.where(fit > 0, fit, 1.0))
    return total + float((view.c / roots) ** 2 @ norms[view.before])


def _below_diagonal(matrix: Working) -> Floats:
    """The sum of every row of a square matrix up to its diagonal, without it."""
    rows = np.arange(len(matrix)) * len(matrix)
    cuts = np.stack([rows, rows + np.arange(len(matrix))], axis=1).ravel()
    sums = np.add.reduceat(matrix.ravel(), cuts, dtype=np.float64)[::2]
    sums[:1] = 0.0  # of an empty run `reduceat` makes its first item
    return np.asarray(sums, np.float64)
