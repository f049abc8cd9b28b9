"""Missing rows (Eq. 3–4), without ever building one.

The j-th instance of the stream, if it lacks the view, stands for the running mean of the view's
present instances so far, with weight w_j = n_j/j. With S₀ the sum carried into the chunk, every
product with such a row is a prefix or suffix sum over the chunk's present rows; only those are
touched, and sparse rows stay sparse.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from stream_fs.selector.arrays import Floats, Indices, Mask, Rows, Working, cross, times
from stream_fs.selector.params import Weights


@dataclass(frozen=True, slots=True, eq=False)
class Imputed:
    """A view's rows of one chunk, the missing ones implied.

    `rows` (n × d) are the present ones, at the positions `at` (n,) of the chunk's N rows; the
    missing ones are at `gaps` (N−n,), each with `before` present rows of this chunk ahead of it;
    `after` (n,) counts the missing rows ahead of each present one.
    `quality` (N,) is W̃ = W² of Eq. 4; `fit` (N,) the weights of the first term, which are the same
    unless missing rows are to count nothing there; `c` (N−n,) = fit_j/n_j. `carried` (d,) is S₀.
    """

    rows: Rows
    at: Indices
    gaps: Indices
    before: Indices
    after: Indices
    quality: Floats
    fit: Floats
    c: Floats
    carried: Working

    @property
    def size(self) -> int:
        """N, missing rows included."""
        return len(self.quality)


def impute(
    rows: Rows, present: Mask, carried: Floats, n: float, j: float, weights: Weights
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
    return Imputed(rows, at, gaps, before, after, quality, fit, c, carried.astype(rows.dtype))


def transposed_product(view: Imputed, U: Floats) -> Working:
    """XᵀW̃U, (d×K): X_pᵀ(U_p + T_p) + S₀gᵀ, in the precision of the rows, stored by column.

    T_i = Σ_{missing j after i} c_j u_j is a suffix sum; g = Σ_missing c_j u_j is its first row.
    """
    if not len(view.gaps):
        return cross(view.rows, U)
    suffix = np.zeros((len(view.gaps) + 1, U.shape[1]))
    spread = U.take(view.gaps, axis=0)
    spread *= view.c[:, None]
    np.cumsum(spread[::-1], axis=0, out=suffix[-2::-1])
    left = U.take(view.at, axis=0)
    left += suffix.take(view.after, axis=0)
    result = cross(view.rows, left)
    result += (suffix[0].astype(result.dtype)[:, None] * view.carried).T
    return result


def product(view: Imputed, V: Working, out: Floats | None = None) -> Floats:
    """W̃XV, (N×K): a missing row is c_j (S₀ᵀV + Σ_{present i<j} x_iᵀV)."""
    result = np.empty((view.size, V.shape[1])) if out is None else out
    present = times(view.rows, V)
    if not len(view.gaps):
        result[:] = present
        return result
    prefix = np.empty((len(present) + 1, V.shape[1]))
    prefix[0] = view.carried @ V
    prefix[1:] = present
    np.cumsum(prefix, axis=0, out=prefix)
    missing = prefix.take(view.before, axis=0)
    missing *= view.c[:, None]
    result[view.at] = present
    result[view.gaps] = missing
    return result


def energy(view: Imputed, gram: Floats) -> float:
    """Σ_j w_j²‖x_j‖² of the chunk, the missing rows' share from the Gram matrix and X_p S₀."""
    squares = np.diagonal(gram)
    total = float(squares.sum())
    if not np.any(view.c):
        return total
    # ‖S₀ + x_1 + … + x_p‖², step by step: each new row adds its square and twice its products.
    carried = view.carried.astype(np.float64)
    steps = squares + 2 * np.tril(gram, -1).sum(axis=1)
    steps += 2 * times(view.rows, view.carried)
    norms = np.concatenate([[0.0], np.cumsum(steps)]) + carried @ carried
    # c_j/n_j = c_j²/fit_j; where n_j has decayed to almost nothing, fit_j is zero before c_j is.
    fit = view.fit[view.gaps]
    roots = np.sqrt(np.where(fit > 0, fit, 1.0))
    return total + float((view.c / roots) ** 2 @ norms[view.before])
