"""The alignment of the clusters of several models: all of them, joined into K groups.

Every model numbers its clusters in its own way, may have split what another has as one, and may
never have seen what others have. So the clusters of all models are joined step by step (Ward's
method): each time the two groups whose union loses least of the variance between group means, which
is the very quantity that relevance is made of. Models over alike data end up matched one to one;
where the data differ, a model may have two clusters in one group and none in another.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from stream_fs.selector.arrays import Floats, Indices
from stream_fs.selector.state import State, ViewState


@dataclass(slots=True, eq=False)
class _Groups:
    """One view's groups: shares of its rows (m), squared distances between the means (m×m).

    Distances are relative to the variance between all clusters, so that views count alike.
    """

    shares: Floats
    apart: Floats

    def losses(self, group: int) -> Floats:
        """Between-variance that a union of the group with each of the others would lose; (m,)."""
        own = self.shares[group]
        total = self.shares + own
        harmonic = np.divide(own * self.shares, total, out=np.zeros_like(total), where=total > 0)
        return np.asarray(harmonic * self.apart[group], np.float64)

    def unite(self, kept: int, gone: int) -> None:
        """Join a group with another, updating its mean and share."""
        total = self.shares[kept] + self.shares[gone]
        part = self.shares[kept] / total if total > 0 else 0.5
        row = part * self.apart[kept] + (1 - part) * self.apart[gone]
        row -= part * (1 - part) * self.apart[kept, gone]
        np.maximum(row, 0.0, out=row)
        row[kept] = 0.0
        self.apart[kept], self.apart[:, kept] = row, row
        self.shares[kept], self.shares[gone] = total, 0.0


def group_clusters(states: Sequence[State]) -> list[Indices]:
    """The group, 0 … K − 1, of every cluster, (K,) for every model.

    Does not depend on the order of the models, but for the groups' numbers: they follow the first
    model's clusters. A view that only one of two models has seen does not contribute to their
    distances. Clusters that no view distinguishes keep their numbers.
    """
    clusters = states[0].params.clusters
    views = [
        groups
        for name in states[0].views
        if (groups := _groups([state.views[name] for state in states])) is not None
    ]
    if not views:
        return [np.arange(clusters)] * len(states)
    joined = _join(views, len(states) * clusters, clusters)
    return list(np.unique(joined, return_inverse=True)[1].reshape(len(states), clusters))


def _join(views: Sequence[_Groups], count: int, wanted: int) -> Indices:
    """The lowest member of every cluster's group when `wanted` groups are left; (count,).

    The nearest other group is kept for each, so that a step looks at few rows, not at all pairs.
    """
    member = np.arange(count)
    losses = np.array([_losses(views, group, count) for group in range(count)])
    np.fill_diagonal(losses, np.inf)
    nearest = losses.argmin(axis=1)
    least = losses[member, nearest]
    for _ in range(count - wanted):
        one = int(least.argmin())
        kept, gone = sorted((one, int(nearest[one])))
        for view in views:
            view.unite(kept, gone)
        member[member == gone] = kept
        row = _losses(views, kept, count)
        row[np.isinf(losses[kept])] = np.inf  # itself, and members of other groups
        losses[kept], losses[:, kept] = row, row
        losses[gone], losses[:, gone] = np.inf, np.inf
        stale = np.flatnonzero((nearest == kept) | (nearest == gone))
        stale = np.append(stale, [kept, gone])
        nearest[stale] = losses[stale].argmin(axis=1)
        nearer = row < losses[np.arange(count), nearest]
        nearest[nearer] = kept
        least = losses[np.arange(count), nearest]
    return member


def _losses(views: Sequence[_Groups], group: int, count: int) -> Floats:
    """Between-variance lost by a union of the group with each of the others, over all views."""
    total = np.zeros(count)
    for view in views:
        total += view.losses(group)
    return total


def _groups(views: Sequence[ViewState]) -> _Groups | None:
    """One group per cluster; None if the clusters do not differ in this view."""
    total = sum(view.n for view in views)
    if not total > 0:
        return None
    mean = sum((view.sum for view in views), np.zeros_like(views[0].sum)) / total
    masses, centred = zip(*(_centred_means(view, mean) for view in views), strict=True)
    shares = np.concatenate(masses) / total
    means = np.hstack(centred)
    peak = float(np.abs(means).max())
    means /= peak if peak > 0 else 1.0  # raw values may be too large, or too small, to be squared
    products = means.T @ means
    squares = np.diagonal(products)
    between = float(shares @ squares)
    if not between > 0:
        return None
    apart = np.maximum(squares[:, None] + squares - 2 * products, 0.0) / between
    return _Groups(shares, apart)


def _centred_means(view: ViewState, mean: Floats) -> tuple[Floats, Floats]:
    """Masses (K) and means (d×K, less the overall one) of a model's clusters.

    Without moments (the paper's presets) the indicators U stand for the consensus; their masses
    are found from Q, whose columns are sums of rows weighted by them.
    """
    if view.moments is not None:
        masses, sums = view.moments.C, view.moments.Z
    else:
        sums = view.Q
        weights = sums.sum(axis=0)
        masses = weights * (view.n / weights.sum()) if weights.sum() > 0 else 0.0 * weights
        row = view.sum.sum() / view.n if view.seen else 0.0
        sums = sums * np.divide(row * masses, weights, out=0.0 * weights, where=weights > 0)
    filled = masses > 1e-12 * view.n
    means = sums / np.where(filled, masses, 1.0) - mean[:, None]
    means[:, ~filled] = 0.0
    return np.where(filled, masses, 0.0), means
