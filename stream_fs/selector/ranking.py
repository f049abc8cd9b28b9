"""From scores to a ranking: greedy against redundancy, and how many features each view gets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.errors import InvalidParameter
from stream_fs.selector.arrays import Floats, Indices, Mask, Working
from stream_fs.selector.kernels.dispatch import choose_features
from stream_fs.selector.kernels.interface import Block, Rival, novelty
from stream_fs.selector.parameters import Budget, is_whole
from stream_fs.selector.relevance import scores
from stream_fs.selector.state import State, ViewState

BLOCKS = (256, 1000)
"""Candidates looked at together, at least and at most. The order does not depend on it."""
TOGETHER, ROWS = 1 << 20, 1024
"""Cosines, and features, that are computed at once: few enough to stay near the processor."""


@dataclass(frozen=True, slots=True, eq=False)
class ViewRanking:
    """One view's part of a ranking: its weight α, features best first, and all scores by index."""

    name: str
    alpha: float
    order: Indices
    scores: Floats
    names: tuple[str, ...] | None

    def top(self, count: int) -> list[str | int]:
        """The first features, by name where they have one."""
        first = [int(feature) for feature in self.order[:count]]
        return list(first) if self.names is None else [self.names[feature] for feature in first]


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """A model's ranking of every view's features, and what made it."""

    preset: str
    score: str
    model: str
    chunk: int
    total: int
    views: tuple[ViewRanking, ...]

    def __getitem__(self, view: str) -> ViewRanking:
        """The ranking of one view."""
        for ranked in self.views:
            if ranked.name == view:
                return ranked
        raise KeyError(view)


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
    """The first `depth` choices, or fewer where nothing is worth anything any more.

    A feature's worth only falls as others are chosen. So the best of a block of leaders may be
    taken as long as it is not below the best feature outside the block; then one matrix product
    brings all that are left up to date, and the next block follows.
    """
    chance = 2 / directions.shape[1]
    left, nearest = np.arange(len(scores)), np.zeros(len(scores), np.float32)
    chosen, gone = [left[:0]], 0
    while (missing := depth - sum(map(len, chosen))) > 0:
        worth = scores * novelty(nearest, chance)
        block = _leaders(worth, _block_size(len(left), missing, len(chosen[-1])))
        leading = directions[block]
        # A copy, for of one array numpy would mirror a triangle.
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
    """Bring `nearest`, cos² with the most similar choice, up to date with new choices."""
    step = max(TOGETHER // len(nearest), 16)
    for start in range(0, len(chosen), step):
        cosines = chosen[start : start + step] @ directions.T
        np.maximum(nearest, np.square(cosines, out=cosines).max(axis=0), out=nearest)


def _block_size(left: int, missing: int, last: int) -> int:
    """Everything, where that is not much and mostly needed; otherwise by what the last one gave.

    The first choices take the worth of many others away, and rivals outside are soon ahead.
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
    """The best one that is not in the block; where there is none, one that beats nobody."""
    outside = worth.copy()
    outside[block] = -1.0
    best = int(outside.argmax())
    return Rival(float(outside[best]), int(features[best]))


def shares(dimensions: Sequence[int], share: float, budget: Budget) -> list[int]:
    """How many features each view gets when a share of all of them is taken.

    `proportional` gives each view round(share·d_v), at least one; `sqrt` divides Σ round(share·d_v)
    as n_v ∝ √d_v with 1 ≤ n_v ≤ d_v (what a full view cannot take goes to the others; remainders
    to the largest fraction, ties to the larger view). Halves are rounded up.
    """
    if not 0 < share <= 1:
        raise InvalidParameter(f"a share of features must be above 0 and at most 1, got {share!r}")
    own = [_round(share * d) for d in dimensions]
    if budget == "proportional":
        return [max(count, 1) for count in own]
    return _water_fill(np.array(dimensions), max(sum(own), len(own)))


def _water_fill(dimensions: Indices, total: int) -> list[int]:
    """Whole numbers n_v ≈ c·√d_v within [1, d_v] that sum to the total."""
    root = np.sqrt(dimensions)
    low, high = 0.0, float(total) + 1.0
    for _ in range(100):
        level = (low + high) / 2
        if np.clip(level * root, 1, dimensions).sum() < total:
            low = level
        else:
            high = level
    ideal = np.clip(high * root, 1, dimensions)
    counts = np.floor(ideal + 1e-9).astype(int)
    by_fraction = np.lexsort((-dimensions, -np.round(ideal - counts, 9)))
    while counts.sum() < total:
        for view in by_fraction:
            if counts.sum() < total and counts[view] < dimensions[view]:
                counts[view] += 1
    return [int(count) for count in counts]


def _round(number: float) -> int:
    """Halves up, so that the total does not depend on which even number is near."""
    return math.floor(number + 0.5)


LEAST_DEPTH = 200
"""Places that are always filled with regard to redundancy, however few are asked for."""


def view_scores(state: State) -> dict[str, Floats]:
    """Scores of every view's features, (d,) each, by index."""
    return {name: scores(view, state.params.score) for name, view in state.views.items()}


def view_orders(
    state: State, scored: Mapping[str, Floats], depth: Mapping[str, int] | None = None
) -> dict[str, Indices]:
    """Every view's features, best first.

    With `depth`, only so many places (and at least 200) are chosen with regard to redundancy, and
    the rest follow by score: the first places are the same, at less cost.
    """
    return {
        name: order(
            scored[name],
            directions(view),
            None if depth is None else max(depth[name], LEAST_DEPTH),
        )
        for name, view in state.views.items()
    }


def rank(state: State, depth: Mapping[str, int] | None = None) -> Ranking:
    """The ranking of a state; `depth` as in `view_orders`."""
    scored = view_scores(state)
    orders = view_orders(state, scored, depth)
    return Ranking(
        preset=state.params.preset,
        score=state.params.score,
        model=state.params.fingerprint,
        chunk=state.chunk,
        total=state.total,
        views=tuple(
            ViewRanking(view.name, float(alpha), orders[view.name], scored[view.name], view.names)
            for view, alpha in zip(state.params.views, state.alpha, strict=True)
        ),
    )


def counts(state: State, top: float | int | Mapping[str, int]) -> dict[str, int]:
    """How many features of each view `top` asks for.

    A share of all features (a float in (0, 1]) is divided between the views by the budget rule; a
    whole number is a count for every view (all of a smaller one); a mapping gives each view its
    own.
    """
    views = state.params.views
    if isinstance(top, float):
        divided = shares([view.dimension for view in views], top, state.params.budget)
        return {view.name: count for view, count in zip(views, divided, strict=True)}
    asked = top if isinstance(top, Mapping) else {view.name: top for view in views}
    if set(asked) != set(state.views):
        raise InvalidParameter(
            f"`top` must name every view: expected {sorted(state.views)}, got {sorted(asked)}"
        )
    for name, count in asked.items():
        if not is_whole(count) or count < 1:
            raise InvalidParameter(
                "`top` must be a share in (0, 1] or a whole number of features from 1, "
                f"got {count!r} for view {name!r}"
            )
    return {view.name: min(int(asked[view.name]), view.dimension) for view in views}


def support(state: State, top: float | int | Mapping[str, int]) -> dict[str, Mask]:
    """Which features are among the chosen: a mask (d,) per view."""
    wanted = counts(state, top)
    masks = {}
    for name, best in view_orders(state, view_scores(state), wanted).items():
        masks[name] = np.zeros(len(best), bool)
        masks[name][best[: wanted[name]]] = True
    return masks
