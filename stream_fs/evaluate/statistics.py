"""Means with their standard errors, and differences of pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import stats

from stream_fs.evaluate.data import Vector


@dataclass(frozen=True)
class Estimate:
    """A mean, the standard error of it (NaN for a single value), and how many values it is of."""

    mean: float
    error: float
    count: int

    @property
    def clear(self) -> bool:
        """Whether it differs from 0 by more than its standard error."""
        return bool(abs(self.mean) > self.error)


def estimate(values: Sequence[float] | Vector) -> Estimate:
    """Mean and its standard error, ``s / √n`` with n − 1 degrees of freedom."""
    array = np.asarray(values, dtype=np.float64)
    if len(array) == 0:
        return Estimate(float("nan"), float("nan"), 0)
    error = float(array.std(ddof=1) / np.sqrt(len(array))) if len(array) > 1 else float("nan")
    return Estimate(float(array.mean()), error, len(array))


def paired_p(differences: Sequence[float] | Vector) -> float:
    """Two-sided p of a paired t-test; 1 where there is nothing to test."""
    array = np.asarray(differences, dtype=np.float64)
    if len(array) < 2 or not array.any():
        return 1.0
    if np.ptp(array) == 0:
        return 0.0
    return float(stats.ttest_1samp(array, 0.0).pvalue)
