"""The order of features, chosen greedily against redundancy."""

from __future__ import annotations

import numpy as np

from stream_fs.selector.arrays import Floats, Indices, Working
from stream_fs.selector.kernels.dispatch import choose_features
from stream_fs.selector.kernels.fallback import novelty
from stream_fs.selector.kernels.interface import Block, Rival
from stream_fs.selector.state import ViewState

BLOCKS = (256, 1000)
"""Minimum and maximum size of a block of candidates. The order does not depend on it."""
TOGETHER, ROWS = 1 << 20, 1024
"""Cosines, and features, per matrix product: few enough for the processor's cache."""


def directions(view: ViewState) -> Working | None:
    """Unit vectors (d×r) whose cosines estimate the correlations between features.

    None where there is no sketch. Single precision is far finer than a sketch is.
    """
    if view.sketch is None or not view.seen:
        return None
    Y, g, mean = view.sketch.Y, view.sketch.g, view.sum / view.n
    found = np.empty(Y.shape, np.float32)
    for start in range(0, len(Y), ROWS):
        part = slice(start, start + ROWS)
        centred = Y[part] - np.outer(mean[part], g)
        lengths = np.linalg.norm(centred, axis=1, keepdims=True)
        found[part] = centred / np.where(lengths > 0, lengths, 1.0)
    return found


def order(scores: Floats, directions: Working | None, depth: int | None = None) -> Indices:
    """All features, best first; ties by index.

    Down to `depth` (None: to the end) each place goes to the feature with the largest
    score · (1 − redundancy), where redundancy is the largest clip((cos² − b)/(1 − b), 0, 1) with a
    feature already chosen, b = 2/r what chance gives a sketch of width r. The rest follows by
    score. Without directions the order is by score alone.
    """
    by_score = np.lexsort((np.arange(len(scores)), -scores))
    if directions is None:
        return by_score
    depth = len(scores) if depth is None else min(depth, len(scores))
    chosen = _greedy(scores, directions, depth)
    taken = np.zeros(len(scores), bool)
    taken[chosen] = True
    return np.concatenate([chosen, by_score[~taken[by_score]]])


def _greedy(scores: Floats, directions: Working, depth: int) -> Indices:
    """The first `depth` choices, or fewer if no remaining feature has any worth.

    The worth of a feature only decreases as others are chosen. So the best of a block of leaders
    can be chosen as long as it is not below the best feature outside the block; then one matrix
    product updates all remaining features, and the next block follows.
    """
    chance = 2 / directions.shape[1]
    left, nearest = np.arange(len(scores)), np.zeros(len(scores), np.float32)
    chosen, gone = [left[:0]], 0
    while (missing := depth - sum(map(len, chosen))) > 0:
        worth = scores * novelty(nearest, chance)
        block = _leaders(worth, _block_size(len(left), missing, len(chosen[-1])))
        leading = directions[block]
        # A copy: for the product of an array with itself numpy would mirror a triangle.
        squares = np.square(leading @ leading.copy().T)
        given = Block(scores[block], left[block], squares, nearest[block], chance)
        taken = choose_features(given, _rival(worth, block, left), missing)
        chosen.append(left[block[taken]])
        if not len(taken) or len(block) == len(left):
            break
        _approach(nearest, directions, leading[taken])
        nearest[block[taken]] = 1.0  # nothing is worth less
        gone += len(taken)
        if 4 * gone >= len(left):
            others = np.isin(left, np.concatenate(chosen), invert=True)
            left, scores, nearest = left[others], scores[others], nearest[others]
            directions, gone = directions[others], 0
    return np.concatenate(chosen)


def _approach(nearest: Working, directions: Working, chosen: Working) -> None:
    """Update `nearest`, cos² with the most similar choice, for new choices."""
    step = max(TOGETHER // len(nearest), 16)
    for start in range(0, len(chosen), step):
        cosines = chosen[start : start + step] @ directions.T
        np.maximum(nearest, np.square(cosines, out=cosines).max(axis=0), out=nearest)


def _block_size(left: int, missing: int, last: int) -> int:
    """The next block size: everything if that is small, otherwise by the yield of the last block.

    The first choices reduce the worth of many others, so that rivals outside soon lead.
    """
    if left <= min(2 * missing, BLOCKS[1]):
        return left
    return min(max(4 * last, BLOCKS[0]), BLOCKS[1])


def _leaders(worth: Floats, count: int) -> Indices:
    """The `count` largest, ties to the lower index; sorted by index."""
    if len(worth) <= count:
        return np.arange(len(worth))
    threshold = np.partition(worth, len(worth) - count)[len(worth) - count]
    above = np.flatnonzero(worth > threshold)
    level = np.flatnonzero(worth == threshold)[: count - len(above)]
    return np.sort(np.concatenate([above, level]))


def _rival(worth: Floats, block: Indices, features: Indices) -> Rival:
    """The best feature outside the block; if there is none, one that never leads."""
    outside = worth.copy()
    outside[block] = -1.0
    best = int(outside.argmax())
    return Rival(float(outside[best]), int(features[best]))
