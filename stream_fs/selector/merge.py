"""One model from several whose clusters are aligned: their statistics add up."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stream_fs.errors import IncompatibleState
from stream_fs.selector.arrays import Floats
from stream_fs.selector.state import Moments, Range, Sketch, State, ViewState


def merge(states: Sequence[State]) -> State:
    """The sums of several models over different data; cluster k must mean the same in each.

    Exact where the models share their space (`unit`, `none`, or a range that is the same);
    approximate where each has its own running range. Ranges merge by min and max; V and the view
    weights are means weighted by the data behind them. A model that has seen nothing changes
    nothing. The origin is that of the first model.
    """
    if not states:
        raise IncompatibleState("there are no models to merge")
    first = states[0]
    for other in states[1:]:
        if other.params != first.params:
            raise IncompatibleState(
                "only models with the same views and parameters can be merged: "
                f"{first.params.fingerprint} and {other.params.fingerprint} differ"
            )
    views = {
        name: _merge_views(first.views[name], [state.views[name] for state in states])
        for name in first.views
    }
    return State(
        params=first.params,
        origin=first.origin,
        views=views,
        alpha=_weighted_mean([state.alpha for state in states], [state.j for state in states]),
        j=sum(state.j for state in states),
        total=sum(state.total for state in states),
        chunk=sum(state.chunk for state in states),
    )


def _merge_views(blank: ViewState, views: Sequence[ViewState]) -> ViewState:
    seen = [view for view in views if view.seen]
    if len(seen) < 2:
        return seen[0] if seen else blank
    return ViewState(
        n=sum(view.n for view in seen),
        sum=_total([view.sum for view in seen]),
        energy=sum(view.energy for view in seen),
        R=_total([view.R for view in seen]),
        Q=_total([view.Q for view in seen]),
        V=_weighted_mean([view.V for view in seen], [view.n for view in seen]),
        loss=sum(view.loss for view in seen),
        range=_merge_ranges([view.range for view in seen if view.range is not None]),
        moments=_merge_moments([view.moments for view in seen if view.moments is not None]),
        sketch=_merge_sketches([view.sketch for view in seen if view.sketch is not None]),
    )


def _merge_ranges(ranges: Sequence[Range]) -> Range | None:
    if not ranges:
        return None
    return Range(
        lo=np.min([part.lo for part in ranges], axis=0),
        hi=np.max([part.hi for part in ranges], axis=0),
    )


def _merge_moments(moments: Sequence[Moments]) -> Moments | None:
    if not moments:
        return None
    return Moments(
        C=_total([part.C for part in moments]),
        C2=_total([part.C2 for part in moments]),
        Z=_total([part.Z for part in moments]),
        q=_total([part.q for part in moments]),
        n2=sum(part.n2 for part in moments),
    )


def _merge_sketches(sketches: Sequence[Sketch]) -> Sketch | None:
    if not sketches:
        return None
    return Sketch(Y=_total([part.Y for part in sketches]), g=_total([part.g for part in sketches]))


def _total(arrays: Sequence[Floats]) -> Floats:
    return np.asarray(np.sum(arrays, axis=0), np.float64)


def _weighted_mean(arrays: Sequence[Floats], weights: Sequence[float]) -> Floats:
    total = sum(weights)
    if not total > 0:
        return arrays[0]
    return _total([array * (weight / total) for array, weight in zip(arrays, weights, strict=True)])
