"""The boundary of the compiled core: every array is checked before a loop gets its address."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from stream_fs.selector.kernels import dispatch

if dispatch.why_not_compiled():
    pytest.skip(f"the compiled core: {dispatch.why_not_compiled()}", allow_module_level=True)

from stream_fs.selector.kernels import _native
from stream_fs.selector.kernels.compiled import ViewArrays

N, n, d, K = 6, 4, 5, 3
WRITTEN = {"V", "lengths", "U", "products", "consensus"}
MATRICES = {"rows", "R0", "Q0", "V", "U", "products", "consensus"}
CSR = {"row_starts", "row_columns", "row_values"}
OTHER = {
    np.dtype(np.float32): np.float64,
    np.dtype(np.float64): np.float32,
    np.dtype(np.int32): np.int64,
    np.dtype(np.int64): np.int32,
    np.dtype(np.uint8): np.int32,
}
"""A type that is not this one."""


@pytest.fixture(scope="module", autouse=True)
def core() -> None:
    """Instead of the cores in turn: there is nothing to compare."""


def view(precision: Any, **other: Any) -> ViewArrays:
    """A view with dense rows, and no neighbours."""
    rng = np.random.default_rng(0)

    def real(*shape: int) -> Any:
        return rng.random(shape).astype(precision)

    arrays: dict[str, Any] = {
        "rows": real(n, d),
        **dict.fromkeys(CSR),
        "present": np.array([1, 1, 0, 1, 0, 1], np.uint8),
        **{name: real(N) for name in ("share", "fit_weights", "beta_W", "diagonal")},
        **{name: real(N) for name in ("consensus_share", "beta_W_total")},
        "theta_starts": np.zeros(N + 1, np.int32),
        "theta_columns": np.zeros(0, np.int32),
        "theta_S": real(0),
        "R0": rng.random((K, K)),
        "Q0": real(K, d),
        "S0": real(d),
        "V": real(K, d),
        "lengths": real(d),
        "U": real(N, 2 * K),
        "products": real(K, 2 * K),
        "consensus": real(N, K),
    }
    return ViewArrays(xi=1.0, eta=1.0, **arrays | other)


def sparse_view(precision: Any) -> ViewArrays:
    """The same view with one value in each row."""
    return view(
        precision,
        rows=None,
        row_starts=np.arange(n + 1),
        row_columns=np.zeros(n, np.int32),
        row_values=np.ones(n, precision),
    )


def altered(arrays: ViewArrays, name: str, array: Any) -> ViewArrays:
    changes: dict[str, Any] = {name: array}
    return replace(arrays, **changes)


def holding(name: str, precision: Any) -> ViewArrays:
    """A view that has this array."""
    return sparse_view(precision) if name in CSR else view(precision)


ARRAYS = [name for name in ViewArrays.__dataclass_fields__ if name not in ("xi", "eta")]


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("make", [view, sparse_view])
def test_arrays_as_they_should_be_are_bound(make: Any, precision: Any) -> None:
    bound = _native.BoundViews([make(precision)])
    assert np.isfinite(bound.step([1.0], 1, 1e-12, 1e-20, 1e20))
    assert np.isfinite(bound.results()).all()


@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_another_type_is_refused(name: str, precision: Any) -> None:
    arrays = holding(name, precision)
    array = getattr(arrays, name)
    wrong = altered(arrays, name, array.astype(OTHER[array.dtype]))
    # The type of U is that of all others.
    place = r"\w+" if name == "U" else name
    with pytest.raises(ValueError, match=f"^{place}: .* expected '.*' but got '.*'"):
        _native.BoundViews([wrong])


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_another_shape_is_refused(name: str) -> None:
    arrays = holding(name, np.float32)
    array = getattr(arrays, name)
    longer = np.concatenate([array, np.ones_like(array, shape=(2, *array.shape[1:]))])
    with pytest.raises(ValueError, match=r"^\w+: expected the shape \(.*\), got \(.*\)"):
        _native.BoundViews([altered(arrays, name, longer)])


@pytest.mark.parametrize("name", ARRAYS)
def test_an_array_of_another_rank_is_refused(name: str) -> None:
    arrays = holding(name, np.float32)
    deeper = getattr(arrays, name)[None]
    with pytest.raises(ValueError, match=r"wrong number of dimensions|unpack|expected the shape"):
        _native.BoundViews([altered(arrays, name, deeper)])


@pytest.mark.parametrize("name", sorted(MATRICES))
def test_a_matrix_that_is_stored_by_column_is_refused(name: str) -> None:
    arrays = view(np.float64)
    by_column = np.asfortranarray(getattr(arrays, name))
    with pytest.raises(ValueError, match=f"^{name}: ndarray is not C-contiguous"):
        _native.BoundViews([altered(arrays, name, by_column)])


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_cannot_be_written_are_taken_where_they_are_only_read(name: str) -> None:
    arrays = holding(name, np.float64)
    getattr(arrays, name).flags.writeable = False
    if name not in WRITTEN:
        _native.BoundViews([arrays])
        return
    with pytest.raises(ValueError, match=f"^{name}: .*read-only"):
        _native.BoundViews([arrays])


@pytest.mark.parametrize("name", ["rows", "share", "V"])
def test_something_else_than_an_array_is_refused(name: str) -> None:
    with pytest.raises((TypeError, ValueError, AttributeError)):
        _native.BoundViews([view(np.float32, **{name: "text"})])


@pytest.mark.parametrize("name", ["row_starts", "theta_starts"])
def test_rows_that_end_behind_their_values_are_refused(name: str) -> None:
    arrays = sparse_view(np.float32)
    beyond = getattr(arrays, name).copy()
    beyond[-1] = 100
    with pytest.raises(ValueError, match=f"^{name}: ends at 100"):
        _native.BoundViews([altered(arrays, name, beyond)])


def test_the_views_of_a_chunk_share_a_consensus() -> None:
    with pytest.raises(ValueError, match="different consensus matrices"):
        _native.BoundViews([view(np.float32), view(np.float32)])
    with pytest.raises(ValueError, match="no view"):
        _native.BoundViews([])


def test_there_is_a_weight_for_each_view() -> None:
    bound = _native.BoundViews([view(np.float32)])
    with pytest.raises(ValueError, match="weights: expected 1 numbers, got 2"):
        bound.step([1.0, 2.0], 1, 1e-12, 1e-20, 1e20)


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("products", np.ones((5, 4))),
        ("products", np.ones((5, 5), int)),
        ("products", np.ones((5, 10))[:, ::2]),
        ("squares", np.ones(4)),
        ("squares", np.ones(5, np.float32)),
        ("distances", np.ones(3)),
        ("nearest", np.ones((4, 2), np.int64)),
        ("nearest", np.ones((5, 2), np.int32)),
    ],
)
def test_arrays_of_the_search_are_checked(name: str, wrong: Any) -> None:
    arrays: dict[str, Any] = {
        "products": np.eye(5),
        "squares": np.ones(5),
        "distances": np.empty(2),
        "nearest": np.empty((5, 2), np.int64),
    }
    _native.nearest_rows(**arrays)
    with pytest.raises((TypeError, ValueError)):
        _native.nearest_rows(**arrays | {name: wrong})


@pytest.mark.parametrize("k", [0, 5])
def test_there_are_neighbours_to_find_and_fewer_than_rows(k: int) -> None:
    with pytest.raises(ValueError, match="expected 1 to 4 columns"):
        _native.nearest_rows(np.eye(5), np.ones(5), np.empty(k), np.empty((5, k), np.int64))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("squares", np.ones((4, 3), np.float32)),
        ("squares", np.ones((4, 4))),
        ("scores", np.ones(5)),
        ("scores", np.ones(4, np.float32)),
        ("features", np.arange(5)),
        ("nearest", np.zeros(5, np.float32)),
        ("nearest", np.zeros(4)),
        ("worth", np.zeros(5)),
        ("taken", np.zeros(2)),
    ],
)
def test_arrays_of_the_choice_are_checked(name: str, wrong: Any) -> None:
    arrays: dict[str, Any] = {
        "squares": np.eye(4, dtype=np.float32),
        "scores": np.ones(4),
        "features": np.arange(4),
        "nearest": np.zeros(4, np.float32),
        "worth": np.empty(4),
        "taken": np.empty(2, np.int64),
        "chance": 0.1,
        "rounding": 1e-5,
        "rival_worth": 0.0,
        "rival": 9,
    }
    assert _native.choose_features(**arrays) == 2
    with pytest.raises(ValueError, match=r"expected"):
        _native.choose_features(**arrays | {name: wrong})
