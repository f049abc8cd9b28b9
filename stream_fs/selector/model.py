"""Reading a model: scores, orders and rankings of a state. Pure, like `update`."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from stream_fs.errors import InvalidParameter
from stream_fs.selector.arrays import Floats, Indices, Mask
from stream_fs.selector.params import is_whole
from stream_fs.selector.ranking import Ranking, ViewRanking, directions, order, shares
from stream_fs.selector.scores import scores
from stream_fs.selector.state import State

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
