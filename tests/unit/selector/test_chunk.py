"""What a user may hand in, and what is refused with its place."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse

from stream_fs.errors import InvalidChunk, StreamFsError
from stream_fs.selector import MultiViewSelector, View, read_chunk
from stream_fs.selector.chunk import LARGEST, concatenate, missing_share, presence
from tests.support.random_streams import dense, state_bytes

VIEWS = (View("a", 3, "minmax"), View("b", 2, "unit"), View("c", 2, "none"))


def rows(size: int = 4, d: int = 2, **changes: Any) -> Any:
    values = np.arange(1.0, size * d + 1).reshape(size, d)
    for place, value in changes.items():
        row, feature = map(int, place.lstrip("_").split("_"))
        values[row, feature] = value
    return values


def with_gap(matrix: Any, row: int) -> Any:
    matrix[row] = np.nan
    return matrix


REFUSED: dict[str, tuple[dict[str, Any], dict[str, Any], tuple[Any, Any, Any], str]] = {
    # inputs, present, (view, row, feature), words of the message
    "no views": ({}, {}, (None, None, None), "there are no rows"),
    "views without rows": ({"b": rows(0)}, {}, (None, None, None), "there are no rows"),
    "only None": ({"b": None}, {}, (None, None, None), "there are no rows"),
    "unknown view": ({"z": rows()}, {}, ("z", None, None), "not declared"),
    "unknown view in present": (
        {"b": rows()},
        {"z": [True] * 4},
        ("z", None, None),
        "not declared",
    ),
    "present without rows": ({"b": rows()}, {"c": [True] * 4}, ("c", None, None), "no rows"),
    "one dimension": ({"b": np.ones(2)}, {}, ("b", None, None), "1 dimension"),
    "three dimensions": ({"b": np.ones((2, 2, 2))}, {}, ("b", None, None), "3 dimension"),
    "a number": ({"b": 3.0}, {}, ("b", None, None), "0 dimension"),
    "too few features": ({"b": rows(d=1)}, {}, ("b", None, None), "1 features where 2"),
    "too many features": (
        {"b": scipy.sparse.csr_array(rows(d=3))},
        {},
        ("b", None, None),
        "3 features where 2",
    ),
    "different sizes": ({"a": rows(d=3), "b": rows(3)}, {}, ("b", None, None), "3 rows where"),
    "ragged": ({"b": [[1.0], [2.0, 3.0]]}, {}, ("b", None, None), "not a matrix of numbers"),
    "words": ({"b": [["x", "y"]]}, {}, ("b", None, None), "not numbers"),
    "objects": ({"b": np.array([[object(), 1]])}, {}, ("b", None, None), "not a matrix"),
    "complex": ({"b": rows() * 1j}, {}, ("b", None, None), "not numbers"),
    "dates": ({"b": np.zeros((1, 2), "datetime64[s]")}, {}, ("b", None, None), "not numbers"),
    "complex sparse": (
        {"b": scipy.sparse.csr_array(rows() * 1j)},
        {},
        ("b", None, None),
        "not numbers",
    ),
    "present of numbers": ({"b": rows()}, {"b": [1, 1, 1, 1]}, ("b", None, None), "truth values"),
    "present too short": ({"b": rows()}, {"b": [True]}, ("b", None, None), "4 truth values"),
    "present as a matrix": (
        {"b": rows()},
        {"b": np.ones((4, 1), bool)},
        ("b", None, None),
        "truth values",
    ),
    "NaN inside a row": ({"b": rows(_2_1=np.nan)}, {}, ("b", 2, 1), "nan inside a present row"),
    "infinity": ({"b": rows(_1_0=np.inf)}, {}, ("b", 1, 0), "inf inside a present row"),
    "minus infinity": ({"a": rows(d=3, _1_2=-np.inf)}, {}, ("a", 1, 2), "-inf inside"),
    "NaN after a gap": (
        {"a": rows(d=3), "b": with_gap(rows(_3_1=np.nan), 1)},
        {},
        ("b", 3, 1),
        "nan",
    ),
    "a present row of NaN": (
        {"a": rows(d=3), "b": with_gap(rows(), 2)},
        {"b": [False, True, True, True]},
        ("b", 2, 0),
        "nan inside",
    ),
    "NaN in a sparse row": (
        {"b": scipy.sparse.csr_array(rows(_2_1=np.nan, _0_0=0.0))},
        {},
        ("b", 2, 1),
        "mark rows that lack the view in `present`",
    ),
    "a negative value, unit": ({"b": rows(_3_0=-1.0)}, {}, ("b", 3, 0), "'unit' does not allow"),
    "a negative value, none": ({"c": rows(_0_1=-1.0)}, {}, ("c", 0, 1), "'none' does not allow"),
    "a negative value, sparse": (
        {"a": scipy.sparse.csr_array(rows(d=3, _1_1=0.0, _3_2=-7.0))},
        {},
        ("a", 3, 2),
        "sparse rows does not allow",
    ),
    "a negative value after gaps": (
        {"a": rows(d=3), "b": scipy.sparse.csr_array(rows(_3_1=-7.0))},
        {"b": [False, True, False, True]},
        ("b", 3, 1),
        "-7.0",
    ),
    "too large for none": ({"c": rows(_2_0=2 * LARGEST)}, {}, ("c", 2, 0), "the largest value"),
    "an empty record": (
        {"b": with_gap(rows(), 1), "c": with_gap(rows(), 1)},
        {},
        (None, 1, None),
        "every view is missing",
    ),
    "an empty record by present": (
        {"b": rows(), "c": rows()},
        {"b": [True, True, False, True], "c": [False, True, False, True]},
        (None, 2, None),
        "every view is missing",
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_used_is_refused_with_its_place(case: str) -> None:
    inputs, present, place, words = REFUSED[case]
    with pytest.raises(InvalidChunk, match=words) as caught:
        read_chunk(VIEWS, inputs, present)
    error = caught.value
    assert (error.view, error.row, error.feature) == place
    assert isinstance(error, StreamFsError)
    assert isinstance(error, ValueError)
    for label, value in zip(("view", "row", "feature"), place, strict=True):
        assert (f"{label} {value!r}" in str(error)) == (value is not None)


def test_a_refused_chunk_leaves_the_selector_as_it_was() -> None:
    rng = np.random.default_rng(0)

    def good(size: int) -> dict[str, Any]:
        return {view.name: rng.random((size, view.dimension)) for view in VIEWS}

    waiting = MultiViewSelector(VIEWS, 2).partial_fit(good(3))
    fitted = MultiViewSelector(VIEWS, 2).partial_fit(good(50))
    for model in (waiting, fitted):
        before, shown = state_bytes(model.state), repr(model)
        for inputs, present, _, _ in REFUSED.values():
            with pytest.raises(InvalidChunk):
                model.partial_fit(inputs, present=present)
        assert state_bytes(model.state) == before
        assert repr(model) == shown
    waiting.partial_fit(good(37))
    assert waiting.state.total == 40


def test_a_first_chunk_smaller_than_the_clusters_is_refused() -> None:
    model = MultiViewSelector([View("a", 3)], 5, first_rows=1).partial_fit({"a": rows(4, 3)})
    before = repr(model)
    with pytest.raises(InvalidChunk, match="4 rows, fewer than the 5 clusters"):
        model.flush()
    assert repr(model) == before
    model.partial_fit({"a": rows(1, 3)})
    assert model.state.total == 5
    model.partial_fit({"a": rows(1, 3)})
    assert model.state.total == 6


@pytest.mark.parametrize(
    ("given", "dtype"),
    [
        (rows().astype(np.float32), np.float32),
        (rows(), np.float64),
        (rows().astype(np.float16), np.float64),
        (rows().astype(np.int8), np.float64),
        (rows() > 2, np.float64),
        (rows().tolist(), np.float64),
        (rows().astype(object), np.float64),
        (scipy.sparse.csr_array(rows().astype(np.float32)), np.float32),
        (scipy.sparse.coo_matrix(rows().astype(np.int64)), np.float64),
        (scipy.sparse.csc_array(rows()), np.float64),
    ],
)
def test_every_kind_of_number_is_taken(given: Any, dtype: Any) -> None:
    chunk = read_chunk(VIEWS, {"b": given})
    part = chunk.views["b"]
    assert part.rows.dtype == dtype
    assert isinstance(part.rows, scipy.sparse.csr_array) == scipy.sparse.issparse(given)
    np.testing.assert_array_equal(dense(part.rows), dense(given))


def test_missing_rows_are_dropped_and_remembered() -> None:
    chunk = read_chunk(
        VIEWS,
        {"a": with_gap(rows(d=3), 1), "b": rows(), "c": None},
        {"b": np.array([True, True, False, True])},
    )
    assert chunk.size == 4
    assert chunk.views.keys() == {"a", "b"}
    np.testing.assert_array_equal(chunk.views["a"].rows, rows(d=3)[[0, 2, 3]])
    np.testing.assert_array_equal(chunk.views["b"].rows, rows()[[0, 1, 3]])
    assert presence(chunk, "a").tolist() == [True, False, True, True]
    assert presence(chunk, "c").tolist() == [False] * 4
    assert [missing_share(chunk, view.name) for view in VIEWS] == [0.25, 0.25, 1.0]


def test_a_view_whose_rows_are_all_missing_is_not_in_the_chunk() -> None:
    absent = np.full((4, 3), np.nan)
    assert read_chunk(VIEWS, {"a": absent, "b": rows()}).views.keys() == {"b"}
    masked = read_chunk(VIEWS, {"a": rows(d=3), "b": rows()}, {"a": np.zeros(4, bool)})
    assert masked.views.keys() == {"b"}


def test_duplicate_entries_of_a_sparse_matrix_are_summed_in_a_copy() -> None:
    given = scipy.sparse.csr_array(
        (np.array([1.0, 2.0, 4.0]), np.array([1, 1, 0]), np.array([0, 3])), shape=(1, 2)
    )
    part = read_chunk(VIEWS, {"b": given}).views["b"]
    np.testing.assert_array_equal(dense(part.rows), [[4.0, 3.0]])
    assert given.data.tolist() == [1.0, 2.0, 4.0]


def test_chunks_are_joined_in_order() -> None:
    first = read_chunk(VIEWS, {"a": with_gap(rows(d=3), 0), "b": rows()})
    second = read_chunk(VIEWS, {"b": scipy.sparse.csr_array(rows(2)), "c": rows(2)})
    third = read_chunk(VIEWS, {"c": scipy.sparse.csr_array(rows(1))})
    joined = concatenate([first, second, third])
    assert joined.size == 7
    np.testing.assert_array_equal(joined.views["a"].rows, rows(d=3)[1:])
    assert presence(joined, "a").tolist() == [False, True, True, True, False, False, False]
    np.testing.assert_array_equal(joined.views["b"].rows, np.vstack([rows(), rows(2)]))
    assert presence(joined, "c").tolist() == [False] * 4 + [True] * 3
    np.testing.assert_array_equal(joined.views["c"].rows, np.vstack([rows(2), rows(1)]))
    sparse = concatenate([third, third])
    assert isinstance(sparse.views["c"].rows, scipy.sparse.csr_array)
    assert concatenate([first]) is first
