"""One model from several over different data: `merge(states) -> State`, pure.

common space ─ alignment of clusters ─ sums added by group ─ (row norms) V fitted again

A merged model is read like any other: `rank(merge(states))`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stream_fs.errors import IncompatibleState
from stream_fs.selector.arrays import Floats, Indices
from stream_fs.selector.iterations import term_weight
from stream_fs.selector.merge.alignment import group_clusters
from stream_fs.selector.merge.common_space import in_common_space, joint_range
from stream_fs.selector.state import Moments, Sketch, State, ViewState
from stream_fs.selector.steps import row_lengths, v_step


def merge(states: Sequence[State]) -> State:
    """The sums of several models, their clusters brought together first.

    Exact where the models share their space (`unit`, `none`, or a range that is the same);
    approximate where each has its own running range, which is widened to that of all. View weights
    are means weighted by the data behind them, and so is V, except for the row-norm score, which
    is V itself: there V is fitted to the merged sums, unless the space has a running range. The
    order of the models changes nothing but rounding, the numbers of the clusters and the origin,
    which is that of the first model. An empty model changes nothing.
    """
    _check(states)
    models = [state for state in states if state.chunk > 0]
    if len(models) < 2:
        return replace(models[0] if models else states[0], origin=states[0].origin)
    models = in_common_space(models)
    return replace(combine(models, group_clusters(models)), origin=states[0].origin)


def combine(models: Sequence[State], groups: Sequence[Indices]) -> State:
    """The sums of models whose clusters are aligned.

    `groups[p][k]` is the merged cluster, 0 … K − 1, of cluster k of model p. Every model has seen
    data, and the spaces are taken as they are.
    """
    params = models[0].params
    merged = State(
        params=params,
        origin=models[0].origin,
        views={
            view.name: _merge_views([model.views[view.name] for model in models], groups)
            for view in params.views
        },
        alpha=_mean([model.alpha for model in models], [model.j for model in models]),
        j=sum(model.j for model in models),
        total=sum(model.total for model in models),
        chunk=sum(model.chunk for model in models),
    )
    return refit(merged) if params.score == "row_norm" else merged


def _check(states: Sequence[State]) -> None:
    if not states:
        raise IncompatibleState("there are no models to merge")
    first = states[0]
    for other in states[1:]:
        if other.params != first.params:
            raise IncompatibleState(
                "only models with the same views and parameters can be merged: "
                f"{first.params.fingerprint} and {other.params.fingerprint} differ"
            )


def _merge_views(views: Sequence[ViewState], groups: Sequence[Indices]) -> ViewState:
    """The sums over the models that have seen the view."""
    seen = [
        (view, np.eye(len(group))[group])
        for view, group in zip(views, groups, strict=True)
        if view.seen
    ]
    if not seen:
        return views[0]
    ranges = [view.range for view, _ in seen if view.range is not None]
    moments = [(view.moments, into) for view, into in seen if view.moments is not None]
    sketches = [view.sketch for view, _ in seen if view.sketch is not None]
    return ViewState(
        n=sum(view.n for view, _ in seen),
        sum=_total([view.sum for view, _ in seen]),
        energy=sum(view.energy for view, _ in seen),
        R=_total([into.T @ view.R @ into for view, into in seen]),
        Q=_total([view.Q @ into for view, into in seen]),
        V=_merge_factors(seen),
        loss=sum(view.loss for view, _ in seen),
        range=joint_range(ranges) if ranges else None,
        moments=_merge_moments(moments) if moments else None,
        sketch=_merge_sketches(sketches) if sketches else None,
    )


def _merge_factors(seen: Sequence[tuple[ViewState, Floats]]) -> Floats:
    """Every column of V: the mean of its group's columns, weighted by the mass of U behind them."""
    masses = [np.diagonal(view.R) for view, _ in seen]
    mass = _total([own @ into for own, (_, into) in zip(masses, seen, strict=True)])
    weights = [
        np.divide(own, into @ mass, out=np.zeros_like(mass), where=into @ mass > 0)
        for own, (_, into) in zip(masses, seen, strict=True)
    ]
    return _total(
        [(view.V * share) @ into for share, (view, into) in zip(weights, seen, strict=True)]
    )


def _merge_moments(moments: Sequence[tuple[Moments, Floats]]) -> Moments:
    """Sums over groups; the squares of a model's clusters that share a group are added, too.

    (Σ(P_a + P_b)² would be a little more, which only the chance part of relevance would notice.)
    """
    return Moments(
        C=_total([part.C @ into for part, into in moments]),
        C2=_total([part.C2 @ into for part, into in moments]),
        Z=_total([part.Z @ into for part, into in moments]),
        q=_total([part.q for part, _ in moments]),
        n2=sum(part.n2 for part, _ in moments),
    )


def _merge_sketches(sketches: Sequence[Sketch]) -> Sketch:
    return Sketch(Y=_total([part.Y for part in sketches]), g=_total([part.g for part in sketches]))


def _total(arrays: Sequence[Floats]) -> Floats:
    total = arrays[0].copy()
    for array in arrays[1:]:
        total += array
    return total


def _mean(arrays: Sequence[Floats], weights: Sequence[float]) -> Floats:
    total = sum(weights)
    return _total([array * (weight / total) for array, weight in zip(arrays, weights, strict=True)])


SETTLED = 1e-7
"""Largest change of V in one step, relative to V, at which it counts as converged."""
MOST_STEPS = 1000
"""Maximum number of steps: near the minimum they become very small."""


def refit(state: State) -> State:
    """The model with V fitted to its R and Q, in every view whose space has no running range."""
    views = dict(state.views)
    for view, share in zip(state.params.views, state.alpha, strict=True):
        before = state.views[view.name]
        if before.seen and before.range is None and before.V.any():
            weight = term_weight(
                before.energy, float(share), len(state.views), state.j, state.params
            )
            eta = state.params.per_view("eta", view.name)
            views[view.name] = replace(before, V=fitted(before, weight, eta))
    return replace(state, views=views)


def fitted(view: ViewState, weight: float, eta: float) -> Floats:
    """The V that minimises weight·(⟨VᵀV, R⟩ − 2⟨V, Q⟩) + η‖V‖_{2,1}; (d×K)."""
    # An entry of exactly zero would stay there, whatever the merged sums say.
    V = np.asfortranarray(view.V + 1e-6 * view.V.mean())
    Q = np.asfortranarray(view.Q)
    for _ in range(MOST_STEPS):
        after = v_step(V, row_lengths(V), Q, view.R, weight, eta)
        change = float(np.abs(after - V).max())
        V = np.asfortranarray(after)
        if change <= SETTLED * float(V.max()):
            break
    return np.ascontiguousarray(V, np.float64)
