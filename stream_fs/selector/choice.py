"""The choice among the leaders of a ranking, one after the other, each against those before it."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

import numpy as np

from stream_fs.selector import library
from stream_fs.selector.arrays import Floats, Indices, Working

ROUNDING = 1e-5
"""Novelty that is nothing but single precision: a copy must not be worth anything."""


class Rival(NamedTuple):
    """The best feature outside of the block, and what it is worth."""

    worth: float
    feature: int


class Block(NamedTuple):
    """Features to choose from, n of them in the order of their indices.

    `squares` (n×n, single precision) is cos² of every feature with every other, `nearest` (n,) with
    the most similar one that was chosen before, `chance` what is free of it.
    """

    scores: Floats
    features: Indices
    squares: Working
    nearest: Working
    chance: float


Choose: TypeAlias = Callable[[Block, Rival, int], Indices]
"""Greedy choices within a block: their positions, up to so many, and up to the first that the rival
beats. Ties go to the lower index; what is worth nothing is not chosen."""


def novelty(squares: Working, b: float) -> Floats:
    """1 − clip((cos² − b)/(1 − b), 0, 1)."""
    found = np.minimum((1 - squares.astype(np.float64)) / (1 - b), 1.0)
    found[found < ROUNDING] = 0.0
    return np.asarray(found, np.float64)


def choose_with_numpy(block: Block, rival: Rival, most: int) -> Indices:
    """See `Choose`."""
    scores, features = block.scores, block.features
    left, pairs = novelty(block.nearest, block.chance), novelty(block.squares, block.chance)
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


def choose_compiled(block: Block, rival: Rival, most: int) -> Indices:
    """See `Choose`; while it works, other threads of Python can."""
    size = len(block.scores)
    taken, worth = np.empty(min(most, size), np.int64), np.empty(size)
    given = (block.squares, block.scores, block.features, block.nearest.copy(), worth)
    arrays = [np.ascontiguousarray(array) for array in given]  # which live until it returns
    count = library.choice().choose(
        size,
        *(array.ctypes.data for array in arrays),
        *(block.chance, ROUNDING, rival.worth, rival.feature, len(taken)),
        taken.ctypes.data,
    )
    return taken[:count].astype(np.intp, copy=False)
