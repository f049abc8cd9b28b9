"""The transformation of models with different running ranges to a common range.

A row is x̃ = s/‖s‖ with s = (x − lo)/(hi − lo). In a wider range s becomes a∘s + b, so that sums
of x̃ become sums of (a∘x̃ + b/‖s‖), divided by the new length. Lengths differ from row to row and
are not kept: one typical length stands for them, that by which the models' means agree best. Models
with the same range do not change; if ranges differ much, because models have seen different
clusters, this improves the merge considerably.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stream_fs.selector.arrays import Floats
from stream_fs.selector.state import Range, Sketch, State, ViewState

PLACES = (0.1, 0.6)
"""Where in its range, from 0 to 1, the mean of a middle feature may lie."""


def in_common_space(models: Sequence[State]) -> list[State]:
    """The models with their sums as if each had known the range of all of them from the start.

    An approximation, for views with a running range; other views are as they were. V changes
    only by the scales of the features.
    """
    views: list[dict[str, ViewState]] = [dict(model.views) for model in models]
    for name in models[0].views:
        ranged = [own for own in views if own[name].seen and own[name].range is not None]
        if len(ranged) > 1:
            for own, moved in zip(ranged, _together([o[name] for o in ranged]), strict=True):
                own[name] = moved
    return [replace(model, views=own) for model, own in zip(models, views, strict=True)]


def joint_range(ranges: Sequence[Range]) -> Range:
    """The range of all data behind several ranges."""
    return Range(
        lo=np.min([part.lo for part in ranges], axis=0),
        hi=np.max([part.hi for part in ranges], axis=0),
    )


def _together(views: Sequence[ViewState]) -> list[ViewState]:
    """Several models' sums of one view, in the range of all of them."""
    ranges = [view.range for view in views if view.range is not None]
    to = joint_range(ranges)
    # Halves: the whole width could overflow.
    width = to.hi / 2 - to.lo / 2
    width = np.where(width > 0, width, 1.0)
    slopes = np.array([(own.hi / 2 - own.lo / 2) / width for own in ranges])
    shifts = np.array([(own.lo / 2 - to.lo / 2) / width for own in ranges])
    shifts *= _inverse_length(views, slopes, shifts)
    return [
        _moved(view, to, slope, shift)
        for view, slope, shift in zip(views, slopes, shifts, strict=True)
    ]


def _inverse_length(views: Sequence[ViewState], slopes: Floats, shifts: Floats) -> float:
    """A typical 1/‖s‖: with it a∘μ + b/‖s‖ differs least between the models, by least squares.

    Where models differ because their data do, this finds too little: so it is kept where a middle
    feature, whose mean is μ = (mean of s)/‖s‖, would have a plausible place in its range.
    """
    weights = np.array([view.n for view in views])
    weights /= weights.sum()
    means = np.array([view.sum / view.n for view in views])
    positive = means[means > 0]
    if not positive.size:
        return 0.0
    middle = float(np.median(positive))
    least, most = middle / PLACES[1], middle / PLACES[0]
    means *= slopes
    means -= weights @ means
    apart = shifts - weights @ shifts
    spread = float(weights @ (apart**2).sum(axis=1))
    best = -float(weights @ (apart * means).sum(axis=1)) / spread if spread > 0 else 0.0
    return min(max(best, least), most)


def _moved(view: ViewState, to: Range, slope: Floats, shift: Floats) -> ViewState:
    """One model's sums, its rows x̃ replaced by slope∘x̃ + shift and brought to their old length."""
    if not shift.any() and (slope[view.sum > 0] == 1).all():
        return replace(view, range=to)
    moments, sketch = view.moments, view.sketch
    if moments is not None:
        q = slope**2 * moments.q + 2 * slope * shift * view.sum + shift**2 * view.n
        # Rows of nothing but zeros had no length; away from zero they get that of all others.
        length = moments.q.sum() or view.n
        grown = np.sqrt(q.sum() / length) if q.sum() > 0 else 1.0
        slope, shift, q = slope / grown, shift / grown, q / grown**2
        Z = slope[:, None] * moments.Z + np.outer(shift, moments.C)
        moments = replace(moments, Z=Z, q=q)
    if sketch is not None:
        sketch = Sketch(slope[:, None] * sketch.Y + np.outer(shift, sketch.g), sketch.g)
    return replace(
        view,
        sum=slope * view.sum + shift * view.n,
        Q=slope[:, None] * view.Q + np.outer(shift, _indicator_masses(view)),
        V=slope[:, None] * view.V,
        range=to,
        moments=moments,
        sketch=sketch,
    )


def _indicator_masses(view: ViewState) -> Floats:
    """ΣU by cluster (K), from Q = ΣX̃ᵀU and the mean row."""
    row = view.sum.sum() / view.n
    return np.asarray(view.Q.sum(axis=0) / row if row > 0 else np.zeros(view.Q.shape[1]))
