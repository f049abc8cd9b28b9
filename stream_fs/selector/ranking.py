"""Rankings of a state: orders of features, and how many of each view are selected."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.errors import InvalidParameter
from stream_fs.selector.arrays import Floats, Indices, Mask
from stream_fs.selector.parameters import Budget, is_whole
from stream_fs.selector.redundancy import directions, order
from stream_fs.selector.relevance import scores
from stream_fs.selector.state import State


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
    """The ranking of all views' features, with preset, score, and position of the model."""

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


def split_budget(dimensions: Sequence[int], share: float, budget: Budget) -> list[int]:
    """The number of features of each view when a share of all features is selected.

    `proportional` gives each view round(share·d_v), at least one; `sqrt` divides Σ round(share·d_v)
    as n_v ∝ √d_v with 1 ≤ n_v ≤ d_v (the excess of full views goes to the others; remainders
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
    """Rounding with halves up, not to even."""
    return math.floor(number + 0.5)


LEAST_DEPTH = 200
"""Minimum number of places that are filled with regard to redundancy."""


def view_scores(state: State) -> dict[str, Floats]:
    """Scores of every view's features, (d,) each, by index."""
    return {name: scores(view, state.params.score) for name, view in state.views.items()}


def view_orders(
    state: State, scored: Mapping[str, Floats], depth: Mapping[str, int] | None = None
) -> dict[str, Indices]:
    """Every view's features, best first.

    With `depth`, only the first places of each view (`depth` of it, and at least 200) are chosen
    with regard to redundancy, and the rest follow by score: the first places are the same, at
    less cost.
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
    """The number of features of each view that `top` selects.

    A share of all features (a float in (0, 1]) is divided between the views by the budget rule; a
    whole number is a count for every view (all of a smaller one); a mapping gives each view its
    own.
    """
    views = state.params.views
    if isinstance(top, float):
        divided = split_budget([view.dimension for view in views], top, state.params.budget)
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
    """The selected features as a mask (d,) per view."""
    wanted = counts(state, top)
    masks = {}
    for name, best in view_orders(state, view_scores(state), wanted).items():
        masks[name] = np.zeros(len(best), bool)
        masks[name][best[: wanted[name]]] = True
    return masks
