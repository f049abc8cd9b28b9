"""Scores of features: relevance, and the paper's row norms."""

from __future__ import annotations

import numpy as np

from stream_fs.selector.arrays import Floats
from stream_fs.selector.parameters import Score
from stream_fs.selector.state import Moments, ViewState

CONSTANT = 1e-9
"""Variance relative to the mean square below which a feature counts as constant."""
NEAR_CONSTANT = 0.01
"""Weight of the squared mean in the demotion T/(T + 0.01·μ²)."""


def scores(view: ViewState, score: Score) -> Floats:
    """The view's scores (d,), non-negative; all zero before it was seen."""
    if not view.seen:
        return np.zeros(len(view.sum))
    if score == "row_norm":
        return row_norms(view.V)
    assert view.moments is not None, "the score relevance requires moments"
    return relevance(view.n, view.sum, view.moments)


def row_norms(V: Floats) -> Floats:
    """‖V(i,:)‖, the paper's score; (d,)."""
    peak = V.max(axis=1)
    scaled = V / np.where(peak > 0, peak, 1.0)[:, None]
    return np.asarray(peak * np.sqrt(np.einsum("ij,ij->i", scaled, scaled)), np.float64)


def relevance(n: float, total: Floats, moments: Moments) -> Floats:
    """Share of each feature's variance that the consensus explains, less chance; (d,), in [0, 1].

    μ = m/n, T = q/n − μ², B = Σ_k C_k(Z_k/C_k − μ)²/n, null = Σ_k C2_k/(C_k n) − n2/n²;
    max(B − T·null, 0)/T · T/(T + 0.01·μ²), and 0 for a constant feature.
    """
    mean = total / n
    mean_square = moments.q / n
    variance = mean_square - mean**2
    filled = 1e-12 * n < moments.C
    C = np.where(filled, moments.C, 1.0)
    between = (moments.Z / C - mean[:, None]) ** 2 @ np.where(filled, moments.C, 0.0) / n
    null = float((moments.C2[filled] / C[filled]).sum() / n - moments.n2 / n / n)
    varies = variance > CONSTANT * mean_square
    explained = np.clip(between - variance * null, 0.0, np.maximum(variance, 0.0))
    result = np.zeros_like(mean)
    np.divide(explained, variance + NEAR_CONSTANT * mean**2, out=result, where=varies)
    return result
