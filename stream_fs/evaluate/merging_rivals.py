"""Other ways to one ranking from several models, to compare `merge` with."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

from stream_fs.selector import State
from stream_fs.selector.common_space import in_common_space
from stream_fs.selector.merge import combine
from stream_fs.selector.model import view_scores

ROUNDS = 20
"""Of matching to the merged means; it settles after a few."""


def averaged(models: Sequence[State]) -> dict[str, NDArray[np.float64]]:
    """Mean of the models' scores, weighted by the rows behind them."""
    scored = [view_scores(model) for model in models]
    mean = {}
    for name in models[0].views:
        rows = np.array([model.views[name].n for model in models])
        mean[name] = rows @ [scores[name] for scores in scored] / max(rows.sum(), 1.0)
    return mean


def matched(models: Sequence[State]) -> State:
    """The sums of models whose clusters were matched one to one with the merged means.

    The largest model comes first; then all are matched to the merged means until none changes.
    """
    models = in_common_space(sorted(models, key=lambda model: -model.total))
    orders = [np.arange(models[0].params.clusters)]
    for model in models[1:]:
        orders.append(_match(combine(models[: len(orders)], orders), model))
    for _ in range(ROUNDS):
        merged = combine(models, orders)
        after = [_match(merged, model) for model in models]
        if all(np.array_equal(a, b) for a, b in zip(after, orders, strict=True)):
            break
        orders = after
    return combine(models, orders)


def _match(reference: State, model: State) -> NDArray[np.intp]:
    """The cluster of the reference for every cluster of the model, by cosine over all views."""
    alike = np.zeros((model.params.clusters, model.params.clusters))
    for name in model.views:
        ours, theirs = _directions(model, name), _directions(reference, name)
        alike += ours.T @ theirs
    return np.asarray(linear_sum_assignment(-alike)[1])


def _directions(model: State, name: str) -> NDArray[np.float64]:
    """Centred cluster means (d×K), to unit length."""
    view = model.views[name]
    assert view.moments is not None, "the default preset keeps moments"
    C = view.moments.C
    means = view.moments.Z / np.where(C > 0, C, 1.0) - (view.sum / max(view.n, 1.0))[:, None]
    lengths = np.where(C > 0, np.linalg.norm(means, axis=0), np.inf)
    return np.asarray(means / np.where(lengths > 0, lengths, 1.0), np.float64)
