"""The methods that are compared, by name; a new one is an entry in `METHODS`.

A method orders the features of every view of a trial, best first. A budget determines how many of
them are selected in each view; every method is measured with both budgets. The selectors and OMVFS
process the rows as a stream, the other methods all rows at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_fs.evaluate.datasets import IncompleteViews, Mask, Matrix, Vector
from stream_fs.evaluate.methods import baselines
from stream_fs.evaluate.methods.omvfs import OmvfsSettings, omvfs_scores
from stream_fs.evaluate.protocol import Trial, chunks
from stream_fs.selector import MultiViewSelector, View
from stream_fs.selector.parameters import Budget, Preset, Transform, params
from stream_fs.selector.ranking import split_budget

Orders: TypeAlias = list[NDArray[np.intp]]
"""Per view, all features, best first."""

BUDGETS: tuple[Budget, ...] = ("sqrt", "proportional")
RANDOM_DRAWS = 4
"""Per repetition: with five repetitions, a figure is the mean of twenty draws."""
MISSING_METHODS = ("RNE", "ASVW", "CGMV-UFS", "ASE-UFS", "CoUFC")
"""The batch methods of the paper's tables that are not implemented."""

DeclaredTransform: TypeAlias = Transform | Literal["declared"]
"""Transform of all views; `declared`: for every view the one that the documentation advises."""
PRESET_TRANSFORMS: Mapping[Preset, DeclaredTransform] = {
    "default": "declared",
    # The printed method does not scale; of the transforms, unit rows serve it best.
    "paper": "unit",
    "classical": "unit",
}
MOSTLY_ZERO = 0.8
"""Share of zeros from which a view is treated as counts or text."""


@dataclass(frozen=True)
class Method:
    """A way to order features: ``rank`` returns one or more draws, each with an order per view.

    ``own_budget`` is the one that belongs to the method. ``identity`` names everything except the
    trial that a result depends on.
    """

    name: str
    rank: Callable[[Trial], Sequence[Orders]]
    own_budget: Budget = "proportional"
    identity: str = "1"


def by_scores(name: str, score: Callable[[Trial], Sequence[Vector]], identity: str = "1") -> Method:
    """A method that orders features by one score; ties are broken by the smaller index."""
    return Method(name, lambda trial: [order_by_scores(score(trial))], identity=identity)


def order_by_scores(scores: Iterable[Vector]) -> Orders:
    """Features by decreasing score; ties are broken by the smaller index."""
    return [np.argsort(-view_scores, kind="stable") for view_scores in scores]


def selector_method(
    name: str,
    preset: Preset,
    transform: DeclaredTransform | None = None,
    **overrides: Any,
) -> Method:
    """I²MUFS with a preset and parameters that differ from it."""
    declared = transform or PRESET_TRANSFORMS[preset]
    view = View("any", 1, None if declared == "declared" else declared)
    values = params([view], 2, preset=preset, **overrides)
    identity = values.fingerprint + (" declared" if declared == "declared" else "")

    def rank(trial: Trial) -> list[Orders]:
        selector = new_selector(trial, preset, declared, **overrides)
        feed_chunks(selector, trial, chunks(trial.instances, trial.clusters))
        return [list(selector.get_order().values())]

    return Method(name, rank, values.budget, identity)


def new_selector(
    trial: Trial, preset: Preset, transform: DeclaredTransform | None = None, **overrides: Any
) -> MultiViewSelector:
    """A new selector for the views of the trial."""
    views = declared_views(trial.data, transform or PRESET_TRANSFORMS[preset])
    return MultiViewSelector(views, trial.clusters, preset=preset, seed=trial.seed, **overrides)


def declared_views(data: IncompleteViews, transform: DeclaredTransform = "declared") -> list[View]:
    """The views as a user would declare them."""
    return [
        View(name, x.shape[1], advised_transform(data, v) if transform == "declared" else transform)
        for v, (name, x) in enumerate(named_views(data))
    ]


def advised_transform(data: IncompleteViews, view: int) -> Transform:
    """`unit` for counts and text (most values are zero, none is negative), else `minmax`."""
    rows = data.present_rows(view)
    counts = rows.size > 0 and (rows == 0).mean() >= MOSTLY_ZERO and rows.min() >= 0
    return "unit" if counts else "minmax"


def feed_chunks(selector: MultiViewSelector, trial: Trial, slices: Iterable[slice]) -> None:
    """Update the selector with chunks of the trial's rows, in order."""
    for rows in slices:
        feed_chunk(selector, trial, rows)
    selector.flush()


def feed_chunk(selector: MultiViewSelector, trial: Trial, rows: slice) -> None:
    """Update the selector with one chunk."""
    views = named_views(trial.data)
    present = trial.data.present
    selector.partial_fit(
        {name: x[rows] for name, x in views},
        present={name: present[rows, v] for v, (name, _) in enumerate(views)},
    )


def named_views(data: IncompleteViews) -> list[tuple[str, Matrix]]:
    """The views with the names that the selector knows them by."""
    return [(f"view_{v}", x) for v, x in enumerate(data.views)]


def select(orders: Orders, share: float, budget: Budget) -> list[Mask]:
    """Masks (d_v each) of the first features; the budget divides a share of all between views."""
    counts = split_budget([len(order) for order in orders], share, budget)
    masks = []
    for order, count in zip(orders, counts, strict=True):
        mask = np.zeros(len(order), dtype=np.bool_)
        mask[order[:count]] = True
        masks.append(mask)
    return masks


def _random(trial: Trial) -> list[Orders]:
    generator = np.random.default_rng(trial.seed)
    return [order_by_scores(baselines.random(trial.data, generator)) for _ in range(RANDOM_DRAWS)]


def _all_features(trial: Trial) -> list[Orders]:
    return [[np.arange(d) for d in trial.dimensions]]


ALL_FEATURES = "all features"
METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        selector_method("default", "default"),
        selector_method("paper", "paper"),
        selector_method("classical", "classical"),
        Method(ALL_FEATURES, _all_features),
        Method("random", _random, identity=f"{RANDOM_DRAWS} draws"),
        by_scores("variance", lambda trial: baselines.variance(trial.data)),
        by_scores("Laplacian score", lambda trial: baselines.laplacian(trial.data)),
        by_scores("OMVFS", omvfs_scores, identity=str(asdict(OmvfsSettings()))),
        by_scores(
            "MiniBatchNMF",
            lambda trial: baselines.mini_batch_nmf(trial.data, trial.clusters, trial.seed),
        ),
    )
}
