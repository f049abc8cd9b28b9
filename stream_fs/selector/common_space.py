"""Models with running ranges of their own, brought to the range of all of them.

A row is x̃ = s/‖s‖ with s = (x − lo)/(hi − lo). In a wider range s becomes a∘s + b, so that sums
of x̃ become sums of (a∘x̃ + b/‖s‖), divided by the new length. Lengths differ from row to row and
are not kept: one typical length per model stands for them. Where models have the same range nothing
changes; where they differ much, because each has seen other clusters, merging is far better for it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from stream_fs.selector.arrays import Floats
from stream_fs.selector.state import Range, Sketch, State, ViewState

TYPICAL = 0.3
"""Where in its range the middle feature is taken to lie on average: gives a typical ‖s‖."""


def in_common_space(models: Sequence[State]) -> list[State]:
    """The models with their sums as if each had known the range of all of them from the start.

    An approximation, for views with a running range; other views are as they were. V is left as it
    is but for the features' scales.
    """
    views: list[dict[str, ViewState]] = [dict(model.views) for model in models]
    for name in models[0].views:
        ranges = [
            view.range
            for model in models
            if (view := model.views[name]).seen and view.range is not None
        ]
        if len(ranges) > 1:
            widest = joint_range(ranges)
            for own in views:
                own[name] = _moved(own[name], widest)
    return [replace(model, views=own) for model, own in zip(models, views, strict=True)]


def joint_range(ranges: Sequence[Range]) -> Range:
    """The range of all data behind several ranges."""
    return Range(
        lo=np.min([part.lo for part in ranges], axis=0),
        hi=np.max([part.hi for part in ranges], axis=0),
    )


def _moved(view: ViewState, to: Range) -> ViewState:
    """One view's sums in another range, which contains its own."""
    if not view.seen or view.range is None:
        return view
    # Halves: the whole width could overflow.
    width = to.hi / 2 - to.lo / 2
    width = np.where(width > 0, width, 1.0)
    slope = (view.range.hi / 2 - view.range.lo / 2) / width
    shift = (view.range.lo / 2 - to.lo / 2) / width * _inverse_length(view)
    if not shift.any() and (slope[view.sum > 0] == 1).all():
        return replace(view, range=to)
    moments, sketch = view.moments, view.sketch
    if moments is not None:
        q = slope**2 * moments.q + 2 * slope * shift * view.sum + shift**2 * view.n
        grown = np.sqrt(q.sum() / moments.q.sum()) if q.sum() > 0 else 1.0
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


def _inverse_length(view: ViewState) -> float:
    """A typical 1/‖s‖: features have the mean share TYPICAL before, μ after the rows are scaled."""
    means = view.sum[view.sum > 0] / view.n
    return float(np.median(means)) / TYPICAL if means.size else 0.0


def _indicator_masses(view: ViewState) -> Floats:
    """ΣU by cluster (K), from Q = ΣX̃ᵀU and the mean row."""
    row = view.sum.sum() / view.n
    return np.asarray(view.Q.sum(axis=0) / row if row > 0 else np.zeros(view.Q.shape[1]))
