"""The choice among the leaders of a ranking, one after the other, each against those before it."""

from __future__ import annotations

import ctypes
from typing import NamedTuple, Protocol

import numpy as np

from stream_fs.selector import library
from stream_fs.selector.arrays import Floats, Indices, Working

ROUNDING = 1e-5
"""Novelty that is nothing but single precision: a copy must not be worth anything."""


class Rival(NamedTuple):
    """The best feature outside of the block, and what it is worth."""

    worth: float
    feature: int


class Choose(Protocol):
    """Greedy choices within a block of n features, in the order of their indices."""

    def __call__(
        self,
        scores: Floats,
        features: Indices,
        squares: Working,
        nearest: Working,
        chance: float,
        rival: Rival,
        most: int,
    ) -> Indices:
        """Positions in the block, up to `most`, and up to the first that the rival beats.

        `squares` (n×n, single precision) is cos² of every feature with every other, `nearest` (n,)
        with the most similar one that was chosen before. Ties go to the lower index; what is worth
        nothing is not chosen.
        """


def novelty(squares: Working, b: float) -> Floats:
    """1 − clip((cos² − b)/(1 − b), 0, 1)."""
    found = np.minimum((1 - squares.astype(np.float64)) / (1 - b), 1.0)
    found[found < ROUNDING] = 0.0
    return np.asarray(found, np.float64)


def choose_with_numpy(
    scores: Floats,
    features: Indices,
    squares: Working,
    nearest: Working,
    chance: float,
    rival: Rival,
    most: int,
) -> Indices:
    """See `Choose`."""
    left, pairs = novelty(nearest, chance), novelty(squares, chance)
    worth = scores * left
    taken: list[int] = []
    while len(taken) < most:
        best = int(worth.argmax())
        if worth[best] <= 0 or (worth[best], -features[best]) < (rival.worth, -rival.feature):
            break
        taken.append(best)
        np.minimum(left, pairs[best], out=left)
        left[best] = 0.0
        np.multiply(scores, left, out=worth)
    return np.array(taken, np.intp)


def choose_compiled(
    scores: Floats,
    features: Indices,
    squares: Working,
    nearest: Working,
    chance: float,
    rival: Rival,
    most: int,
) -> Indices:
    """See `Choose`; while it works, other threads of Python can."""
    taken = np.empty(min(most, len(scores)), np.int64)
    given = (np.ascontiguousarray(squares), np.ascontiguousarray(scores), features, nearest.copy())
    arrays = (*given, np.zeros(len(scores)))
    count = library.choice().choose(
        len(scores),
        *(ctypes.c_void_p(array.ctypes.data) for array in arrays),
        *(chance, ROUNDING, rival.worth, rival.feature, len(taken)),
        ctypes.c_void_p(taken.ctypes.data),
    )
    return taken[:count].astype(np.intp, copy=False)
