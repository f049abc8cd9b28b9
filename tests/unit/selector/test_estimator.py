"""`MultiViewSelector`: waiting for the first chunk, names of features, and answers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from stream_fs.errors import InvalidChunk, InvalidParameter, NotFitted
from stream_fs.selector import MultiViewSelector, View
from stream_fs.selector.state import flatten
from tests.support.random_streams import state_bytes


class Frame:
    """As much of a data frame as the selector looks at."""

    def __init__(self, values: Any, columns: list[Any]) -> None:
        self.values = values
        self.columns = columns

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        return np.array(self.values, dtype=dtype, copy=copy)


VIEWS = [View("a", 3), View("b", 2)]


def chunk(size: int, seed: int = 0) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    return {"a": rng.random((size, 3)), "b": rng.random((size, 2))}


def test_nothing_is_known_before_the_first_chunk_is_complete() -> None:
    model = MultiViewSelector(VIEWS, 2)
    for size, seed in ((10, 0), (29, 1)):
        model.partial_fit(chunk(size, seed))
    questions: list[Any] = [
        model.scores,
        model.get_order,
        model.ranking,
        lambda: model.get_support(0.5),
        lambda: model.transform(chunk(3), 0.5),
        lambda: model.last_report,
    ]
    for question in questions:
        with pytest.raises(NotFitted, match="39 of 40 rows"):
            question()
    assert "waiting, 39 of 40 rows" in repr(model)
    model.partial_fit(chunk(5))
    for question in questions:
        question()
    assert model.last_report.rows == 44
    assert "1 chunks, 44 rows" in repr(model)


def test_flush_takes_what_there_is() -> None:
    model = MultiViewSelector(VIEWS, 2).partial_fit(chunk(7)).partial_fit(chunk(2)).flush()
    assert model.last_report.rows == 9
    before = state_bytes(model.state)
    assert state_bytes(model.flush().state) == before
    assert MultiViewSelector(VIEWS, 2).flush().state.chunk == 0


def test_later_chunks_may_be_as_small_as_one_row() -> None:
    model = MultiViewSelector(VIEWS, 2).partial_fit(chunk(40))
    for seed in range(3):
        model.partial_fit(chunk(1, seed))
    assert model.state.total == 43
    assert model.last_report.rows == 1


def test_features_take_their_names_from_the_columns() -> None:
    model = MultiViewSelector(VIEWS, 2, first_rows=1)
    data = chunk(30)
    model.partial_fit({"a": Frame(data["a"], ["x", "y", 7]), "b": data["b"]})
    ranking = model.ranking()
    assert ranking["a"].names == ("x", "y", "7")
    assert ranking["b"].names is None
    assert ranking["a"].top(2) == [("x", "y", "7")[i] for i in ranking["a"].order[:2]]
    assert ranking["b"].top(1) == [int(ranking["b"].order[0])]
    model.partial_fit(data)  # without names: nothing contradicts
    model.partial_fit({"a": Frame(data["a"], ["x", "y", "7"])})
    assert model.state.params.views[0].names == ("x", "y", "7")


def test_other_columns_are_another_matrix() -> None:
    model = MultiViewSelector([View("a", 3, names=("x", "y", "z")), View("b", 2)], 2)
    before = state_bytes(model.state)
    with pytest.raises(InvalidChunk, match="column 'z' where 'y' was before") as caught:
        model.partial_fit({"a": Frame(chunk(9)["a"], ["x", "z", "y"])})
    assert (caught.value.view, caught.value.feature) == ("a", 1)
    with pytest.raises(InvalidChunk, match="2 features where 3 are declared"):
        model.partial_fit({"a": Frame(chunk(9)["b"], ["x", "z"])})
    assert state_bytes(model.state) == before


def test_a_refused_chunk_names_nothing() -> None:
    model = MultiViewSelector(VIEWS, 2)
    bad = chunk(9)["a"]
    bad[4, 1] = np.inf
    with pytest.raises(InvalidChunk):
        model.partial_fit({"a": Frame(bad, ["x", "y", "z"])})
    assert model.params.views[0].names is None
    model.partial_fit({"a": Frame(chunk(9)["a"], ["z", "y", "x"])})
    assert model.params.views[0].names == ("z", "y", "x")


@pytest.fixture
def fitted() -> MultiViewSelector:
    return MultiViewSelector(VIEWS, 2).partial_fit(chunk(50))


@pytest.mark.parametrize("top", [0, -1, 0.0, 1.5, True, "3", None, {"a": 1}, {"a": 1, "b": 0}])
def test_a_budget_that_makes_no_sense_is_refused(fitted: MultiViewSelector, top: Any) -> None:
    with pytest.raises(InvalidParameter):
        fitted.get_support(top)


def test_transform_refuses_what_it_was_not_fitted_to(fitted: MultiViewSelector) -> None:
    with pytest.raises(InvalidChunk, match="not declared") as caught:
        fitted.transform({"z": np.ones((2, 3))}, 1)
    assert caught.value.view == "z"
    for wrong in (np.ones((2, 2)), np.ones(3), scipy.sparse.csr_array(np.ones((2, 4)))):
        with pytest.raises(InvalidChunk, match="expected 3 columns") as caught:
            fitted.transform({"a": wrong}, 1)
        assert caught.value.view == "a"


@pytest.mark.parametrize("form", ["csr_array", "csc_matrix", "coo_array", "lil_matrix"])
def test_transform_takes_any_sparse_matrix(fitted: MultiViewSelector, form: str) -> None:
    values = np.arange(6.0).reshape(2, 3)
    result = fitted.transform({"a": getattr(scipy.sparse, form)(values)}, 2)["a"]
    expected = values[:, fitted.get_support(2)["a"]]
    np.testing.assert_array_equal(result.toarray(), expected)


def test_the_order_of_views_in_a_chunk_does_not_matter() -> None:
    data = chunk(45)
    one = MultiViewSelector(VIEWS, 2).partial_fit(data)
    other = MultiViewSelector(VIEWS, 2).partial_fit(dict(reversed(data.items())))
    assert state_bytes(one.state) == state_bytes(other.state)


@pytest.mark.parametrize("form", [np.asarray, scipy.sparse.csr_array])
def test_rows_kept_back_are_copies(form: Any) -> None:
    """A streaming caller reuses the memory of its arrays."""
    again, apart = MultiViewSelector(VIEWS, 2), MultiViewSelector(VIEWS, 2)
    buffers = {name: form(rows) for name, rows in chunk(15).items()}
    for seed in range(4):
        fresh = chunk(15, seed)
        for name, rows in fresh.items():
            memory = buffers[name].data if scipy.sparse.issparse(buffers[name]) else buffers[name]
            memory[...] = rows.reshape(memory.shape)
        again.partial_fit(buffers)
        apart.partial_fit({name: form(rows) for name, rows in fresh.items()})
    assert state_bytes(again.state) == state_bytes(apart.state)


def test_nobody_can_write_into_a_state() -> None:
    model = MultiViewSelector(VIEWS, 2).partial_fit(chunk(50))
    for array in flatten(model.state)[1].values():
        if array.ndim:
            with pytest.raises(ValueError, match="read-only"):
                array[...] = np.nan


def test_transform_refuses_columns_in_another_order() -> None:
    model = MultiViewSelector(VIEWS, 2)
    data = chunk(50)
    model.partial_fit({"a": Frame(data["a"], ["x", "y", "z"]), "b": data["b"]})
    chosen = model.transform({"a": Frame(data["a"], ["x", "y", "z"])}, 1)["a"]
    np.testing.assert_array_equal(chosen, model.transform({"a": data["a"]}, 1)["a"])
    with pytest.raises(InvalidChunk, match="column 'z' where 'x' was before"):
        model.transform({"a": Frame(data["a"], ["z", "y", "x"])}, 1)
