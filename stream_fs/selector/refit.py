"""V of a merged model, where V is the score: fitted anew to the merged R and Q.

The mean of several models' V is not the V of their data: each was fitted to its own sums. Given R
and Q, what is left of the objective is convex in V, so its minimum does not depend on the models
that V came from.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from stream_fs.selector.arrays import Floats
from stream_fs.selector.factorisation import term_weight
from stream_fs.selector.state import State, ViewState
from stream_fs.selector.updates import row_lengths, v_step

SETTLED = 1e-7
"""Largest change of V in one step, relative to V, at which it counts as converged."""
MOST_STEPS = 1000
"""Steps after which V is taken as it is: near the minimum the steps become very small."""


def refit(state: State) -> State:
    """The model with V fitted to its R and Q, in every view whose space has no running range."""
    views = dict(state.views)
    for view, share in zip(state.params.views, state.alpha, strict=True):
        before = state.views[view.name]
        if before.seen and before.range is None and before.V.any():
            weight = term_weight(
                before.energy, float(share), len(state.views), state.j, state.params
            )
            eta = state.params.of_view("eta", view.name)
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
