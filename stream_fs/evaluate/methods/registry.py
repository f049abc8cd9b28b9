"""The methods that are compared, by name. To add one, give `METHODS` another entry.

A method turns a problem into an order of every view's features, best first; how many of them are
taken from each view is a budget, and every method is measured with both. The selectors and OMVFS
read the rows as a stream; the others see all of them at once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_fs.evaluate.datasets import IncompleteViews, Mask, Matrix, Vector
from stream_fs.evaluate.methods import baselines
from stream_fs.evaluate.methods.omvfs import Omvfs, OmvfsSettings
from stream_fs.evaluate.protocol import Problem, chunks
from stream_fs.selector import MultiViewSelector, View
from stream_fs.selector.parameters import Budget, Preset, Transform, params
from stream_fs.selector.ranking import shares

Orders: TypeAlias = list[NDArray[np.intp]]
"""Per view, all features, best first."""

BUDGETS: tuple[Budget, ...] = ("sqrt", "proportional")
RANDOM_DRAWS = 4
"""Per repetition: with five repetitions, twenty draws stand behind every figure."""
MISSING_METHODS = ("RNE", "ASVW", "CGMV-UFS", "ASE-UFS", "CoUFC")
"""The batch methods of the paper's tables that nobody has added yet."""
Space: TypeAlias = Transform | Literal["declared"]
"""How views are scaled; `declared`: as the documentation advises for each of them."""
MOSTLY_ZERO = 0.8
"""Share of zeros from which a view is taken for counts or text."""
SPACES: Mapping[Preset, Space] = {
    "default": "declared",
    "paper": "unit",
    "classical": "unit",
}
"""Every preset's space: as printed the method scales nothing, and unit rows serve it best."""


@dataclass(frozen=True)
class Method:
    """A way to order features: ``rank`` gives one or more draws, each with an order per view.

    ``own_budget`` is the division between views that belongs to the method. ``identity`` holds all
    that a result depends on beside the problem.
    """

    name: str
    rank: Callable[[Problem], Sequence[Orders]]
    own_budget: Budget = "proportional"
    identity: str = "1"
    kind: Literal["selector", "stream", "batch"] = "batch"


def by_scores(
    name: str, score: Callable[[Problem], Sequence[Vector]], identity: str = "1"
) -> Method:
    """A method that scores every feature once; ties go to the smaller index."""
    return Method(name, lambda problem: [orders_of(score(problem))], identity=identity)


def orders_of(scores: Iterable[Vector]) -> Orders:
    """Features by falling score, ties to the smaller index."""
    return [np.argsort(-of_view, kind="stable") for of_view in scores]


def selector_method(
    name: str,
    preset: Preset,
    transform: Space | None = None,
    **overrides: Any,
) -> Method:
    """I²MUFS with a preset, and parameters that differ from it."""
    space = transform or SPACES[preset]
    scaled = None if space == "declared" else space
    values = params([View("any", 1, scaled)], 2, preset=preset, **overrides)
    identity = values.fingerprint + (" declared" if space == "declared" else "")

    def rank(problem: Problem) -> list[Orders]:
        selector = new_selector(problem, preset, space, **overrides)
        stream(selector, problem, chunks(problem.instances, problem.clusters))
        return [list(selector.get_order().values())]

    return Method(name, rank, values.budget, identity, "selector")


def new_selector(
    problem: Problem, preset: Preset, transform: Space | None = None, **overrides: Any
) -> MultiViewSelector:
    """A selector for the problem's views that has seen nothing."""
    views = declared_views(problem.data, transform or SPACES[preset])
    return MultiViewSelector(views, problem.clusters, preset=preset, seed=problem.seed, **overrides)


def declared_views(data: IncompleteViews, space: Space = "declared") -> list[View]:
    """The views as a user would declare them."""
    return [
        View(name, x.shape[1], advised(data, v) if space == "declared" else space)
        for v, (name, x) in enumerate(named(data))
    ]


def advised(data: IncompleteViews, view: int) -> Transform:
    """`unit` for counts and text (most values are zero, none is negative); else `minmax`."""
    rows = data.present_rows(view)
    counts = rows.size > 0 and (rows == 0).mean() >= MOSTLY_ZERO and rows.min() >= 0
    return "unit" if counts else "minmax"


def stream(selector: MultiViewSelector, problem: Problem, cut: Iterable[slice]) -> None:
    """Feed slices of the rows to the selector, in order."""
    for rows in cut:
        feed(selector, problem, rows)
    selector.flush()


def feed(selector: MultiViewSelector, problem: Problem, rows: slice) -> None:
    """Feed one chunk."""
    views = named(problem.data)
    present = problem.data.present
    selector.partial_fit(
        {name: x[rows] for name, x in views},
        present={name: present[rows, v] for v, (name, _) in enumerate(views)},
    )


def named(data: IncompleteViews) -> list[tuple[str, Matrix]]:
    """The views under the names that the selector gets."""
    return [(f"view_{v}", x) for v, x in enumerate(data.views)]


def omvfs_scores(problem: Problem, settings: OmvfsSettings | None = None) -> list[Vector]:
    """OMVFS over the stream, missing rows filled with the mean."""
    model = Omvfs(problem.clusters, problem.seed, settings or OmvfsSettings())
    for views in imputed_chunks(problem):
        model.fit_chunk(views)
    return model.scores()


def imputed_chunks(problem: Problem) -> Iterable[list[Matrix]]:
    """The stream's chunks as complete views of unit rows."""
    data = problem.data
    filled = [baselines.unit_mean_imputed(data, v) for v in range(len(data.views))]
    for rows in chunks(len(data.present), problem.clusters):
        yield [x[rows].astype(np.float64) for x in filled]


def _random(problem: Problem) -> list[Orders]:
    generator = np.random.default_rng(problem.seed)
    return [orders_of(baselines.random(problem.data, generator)) for _ in range(RANDOM_DRAWS)]


def _everything(problem: Problem) -> list[Orders]:
    return [[np.arange(d) for d in problem.dimensions]]


ALL = "all features"
METHODS: Mapping[str, Method] = {
    method.name: method
    for method in (
        selector_method("default", "default"),
        selector_method("paper", "paper"),
        selector_method("classical", "classical"),
        Method(ALL, _everything),
        Method("random", _random, identity=f"{RANDOM_DRAWS} draws"),
        by_scores("variance", lambda problem: baselines.variance(problem.data)),
        by_scores("Laplacian score", lambda problem: baselines.laplacian(problem.data)),
        Method(
            "OMVFS",
            lambda problem: [orders_of(omvfs_scores(problem))],
            identity=str(asdict(OmvfsSettings())),
            kind="stream",
        ),
        by_scores(
            "MiniBatchNMF",
            lambda problem: baselines.mini_batch_nmf(problem.data, problem.clusters, problem.seed),
        ),
    )
}


def select(orders: Orders, share: float, budget: Budget) -> list[Mask]:
    """Masks (d_v each) of the first features when a share of all of them is divided by a budget."""
    counts = shares([len(order) for order in orders], share, budget)
    masks = []
    for order, count in zip(orders, counts, strict=True):
        mask = np.zeros(len(order), dtype=np.bool_)
        mask[order[:count]] = True
        masks.append(mask)
    return masks
