import numpy as np
import pytest

from stream_fs.evaluate.datasets import IncompleteViews
from stream_fs.evaluate.methods.registry import (
    ALL_FEATURES,
    METHODS,
    MISSING_METHODS,
    RANDOM_DRAWS,
    advised_transform,
    new_selector,
    order_by_scores,
    select,
    selector_method,
)
from stream_fs.evaluate.protocol import Trial
from tests.support.planted_views import planted_views


def trial(seed: int = 0) -> Trial:
    data, _ = planted_views()
    return Trial(data, 4, seed)


def test_all_methods_are_registered() -> None:
    assert list(METHODS) == [
        "default",
        "paper",
        "classical",
        ALL_FEATURES,
        "random",
        "variance",
        "Laplacian score",
        "OMVFS",
        "MiniBatchNMF",
    ]
    assert not set(METHODS) & set(MISSING_METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_orders_every_feature_and_repeats_itself(name: str) -> None:
    draws, again = METHODS[name].rank(trial()), METHODS[name].rank(trial())
    assert len(draws) == (RANDOM_DRAWS if name == "random" else 1)
    for orders, same in zip(draws, again, strict=True):
        for order, other in zip(orders, same, strict=True):
            assert sorted(order.tolist()) == list(range(24))
            assert order.tolist() == other.tolist()


@pytest.mark.parametrize("name", [name for name in METHODS if name not in (ALL_FEATURES, "random")])
def test_planted_features_come_first(name: str) -> None:
    for order in METHODS[name].rank(trial())[0]:
        assert (order[:12] < 12).mean() >= 0.75


@pytest.mark.parametrize("name", ["default", "paper", "OMVFS", "variance", "Laplacian score"])
def test_missing_rows_are_never_read(name: str) -> None:
    clean = trial()
    views = []
    for v, x in enumerate(clean.data.views):
        filled = x.copy()
        filled[~clean.data.present[:, v]] = 1e3
        views.append(filled)
    dirty = Trial(IncompleteViews(tuple(views), clean.data.present), 4, 0)
    for order, other in zip(
        METHODS[name].rank(clean)[0], METHODS[name].rank(dirty)[0], strict=True
    ):
        assert order.tolist() == other.tolist()


def test_counts_are_scaled_by_row_and_other_views_by_feature() -> None:
    generator = np.random.default_rng(0)
    counts = generator.poisson(0.1, (50, 20)).astype(float)
    counts[0] = 7.0  # of a row that is missing
    data = IncompleteViews((counts, generator.random((50, 20))), np.arange(50)[:, None] > [0, -1])
    assert [advised_transform(data, v) for v in range(2)] == ["unit", "minmax"]
    selector = new_selector(Trial(data, 2, 0), "default")
    assert [view.transform for view in selector.params.views] == ["unit", "minmax"]
    everywhere = selector_method("a", "default", "minmax")
    assert everywhere.identity != selector_method("a", "default").identity


def test_ties_go_to_the_smaller_index() -> None:
    assert order_by_scores([np.array([1.0, 2.0, 1.0, 2.0])])[0].tolist() == [1, 3, 0, 2]


def test_budgets_divide_the_same_total() -> None:
    orders = [np.arange(100)[::-1], np.arange(4)]
    proportional = select(orders, 0.25, "proportional")
    root = select(orders, 0.25, "sqrt")
    assert [mask.sum() for mask in proportional] == [25, 1]
    assert [mask.sum() for mask in root] == [22, 4]
    assert np.flatnonzero(proportional[0]).tolist() == list(range(75, 100))
    assert np.flatnonzero(proportional[1]).tolist() == [0]


def test_another_parameter_is_another_identity() -> None:
    plain, decayed = selector_method("a", "default"), selector_method("a", "default", decay=0.9)
    assert plain.identity == METHODS["default"].identity
    assert decayed.identity != plain.identity
    assert plain.own_budget == "sqrt"
    assert selector_method("a", "paper").own_budget == "proportional"
