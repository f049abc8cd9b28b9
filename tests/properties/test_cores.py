"""The cores of the selector give equal results up to rounding."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any, get_args

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.errors import InvalidParameter
from stream_fs.selector import (
    Report,
    State,
    View,
    initial_state,
    params,
    rank,
    read_chunk,
    update,
)
from stream_fs.selector.kernels import dispatch, fallback
from stream_fs.selector.kernels.interface import Block, Rival
from stream_fs.selector.parameters import Preset
from stream_fs.selector.state import flatten
from tests.support.random_streams import SEEDS

CLOSE = {np.float32: 2e-3, np.float64: 1e-9}
MODULES = {"numpy": "fallback", "compiled": "compiled"}
ITERATIONS = {"NumpyIteration", "CompiledIteration"}
VIEWS = [View("a", 12), View("b", 30), View("c", 5)]
ROWS = 60


def chunks(precision: Any, sparse: bool) -> Iterator[Any]:
    """Three clusters in every view; one view lacks no row, one lacks half, one a whole chunk."""
    rng = np.random.default_rng(5)
    means = {view.name: 3 * rng.random((3, view.dimension)) for view in VIEWS}
    for number in range(4):
        labels = rng.integers(3, size=ROWS)
        inputs: dict[str, Any] = {}
        for view in VIEWS:
            rows = means[view.name][labels] + rng.random((ROWS, view.dimension))
            rows *= rng.random(rows.shape) > 0.3
            rows = rows.astype(precision)
            inputs[view.name] = scipy.sparse.csr_array(rows) if sparse else rows
        present = {"b": rng.random(ROWS) > 0.5}
        if number == 2:
            del inputs["c"]
        yield read_chunk(VIEWS, inputs, present)


def outcome(
    core: str, preset: Preset, precision: Any, sparse: bool, repeats: int
) -> tuple[State, list[Report]]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(dispatch.VARIABLE, core)
        # As many iterations on both: which is the last depends on the last digit.
        limits = {"min_iterations": 12, "max_iterations": 12, "inner_updates": repeats}
        state = initial_state(params(VIEWS, 3, preset=preset, **limits))
        reports = []
        for chunk in chunks(precision, sparse):
            state, report = update(state, chunk)
            reports.append(report)
        return state, reports


@pytest.mark.parametrize("repeats", [1, 2])
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "csr"])
@pytest.mark.parametrize("precision", [np.float32, np.float64])
@pytest.mark.parametrize("preset", get_args(Preset))
def test_cores_differ_by_rounding_alone(
    core: str, preset: Preset, precision: Any, sparse: bool, repeats: int
) -> None:
    state, reports = outcome(core, preset, precision, sparse, repeats)
    expected, stated = outcome("numpy", preset, precision, sparse, repeats)
    for name, array in flatten(expected)[1].items():
        scale = float(np.max(np.abs(array), initial=1e-30))
        own = flatten(state)[1][name]
        np.testing.assert_allclose(own / scale, array / scale, atol=CLOSE[precision], err_msg=name)
    for one, other in zip(reports, stated, strict=True):
        np.testing.assert_allclose(one.objective, other.objective, rtol=CLOSE[precision])


@given(
    seed=SEEDS,
    n=st.integers(1, 70),
    most=st.integers(0, 80),
    rival=st.sampled_from([-1.0, 0.25, 0.5]) | st.floats(-1, 1),
)
def test_cores_choose_the_same_features(seed: int, n: int, most: int, rival: float) -> None:
    """To the last digit, among copies, ties, worthless ones, and what is like an earlier choice."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 8)) * (rng.random((n, 1)) < 0.9)
    rows[rng.random(n) < 0.3] = rows[0]
    rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-30)
    rows = rows.astype(np.float32)
    block = Block(
        rng.choice([0.0, 0.25, 0.5, rng.random()], size=n),
        np.sort(rng.permutation(2 * n)[:n]),
        np.square(rows @ rows.T),
        np.where(rng.random(n) < 0.5, 0, rng.random(n)).astype(np.float32),
        0.25,
    )
    other = Rival(rival, int(rng.integers(2 * n)))
    found = dispatch.choose_features(block, other, most)
    assert found.tolist() == fallback.choose_features(block, other, most).tolist()


@given(
    seed=SEEDS,
    n=st.integers(0, 90),
    neighbours=st.integers(1, 30),
    kinds=st.integers(1, 100),
    precision=st.sampled_from([np.float32, np.float64]),
)
def test_cores_find_the_same_neighbours(
    seed: int, n: int, neighbours: int, kinds: int, precision: Any
) -> None:
    """Among copies and ties, which rounding puts at a distance a little less than nothing."""
    rng = np.random.default_rng(seed)
    rows = rng.random((kinds, 6))[rng.integers(kinds, size=n)].astype(precision)
    products = rows @ rows.T
    found = dispatch.nearest_rows(products, neighbours)
    expected = fallback.nearest_rows(products, neighbours)
    assert found.shape == (n, max(min(neighbours, n - 1), 0))
    np.testing.assert_array_equal(np.sort(found), np.sort(expected))


def test_the_requested_core_is_used(core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = set()
    for module in {fallback, import_module(f"stream_fs.selector.kernels.{MODULES[core]}")}:
        for name in ITERATIONS & set(vars(module)) | {"nearest_rows", "choose_features"}:
            original = getattr(module, name)

            def spy(*given: Any, original: Any = original) -> Any:
                used.add((original.__module__.rpartition(".")[2], original.__name__))
                return original(*given)

            monkeypatch.setattr(module, name, spy)
    assert dispatch.active_core() == core
    state, _ = outcome(core, "default", np.float32, False, 1)
    rank(state)
    assert {module for module, _ in used} == {MODULES[core]}
    assert len(used) == 3


def test_a_missing_core_is_an_error_when_it_is_requested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dispatch, "why_not_compiled", lambda: "it was not built")
    monkeypatch.setenv(dispatch.VARIABLE, "compiled")
    with pytest.raises(InvalidParameter, match="demands the compiled core, but it was not built"):
        dispatch.active_core()
    monkeypatch.delenv(dispatch.VARIABLE)
    assert dispatch.active_core() == "numpy"


def test_the_order_of_rows_does_not_matter() -> None:
    """As they lie in a data frame, column by column; and CSR with either kind of index."""
    rng = np.random.default_rng(8)
    views = [View("a", 12, "none")]
    rows = rng.random((ROWS, 12)) * (rng.random((ROWS, 12)) > 0.5)
    sparse = scipy.sparse.csr_array(rows)
    wide = scipy.sparse.csr_array(rows)
    wide.indptr, wide.indices = wide.indptr.astype(np.int64), wide.indices.astype(np.int64)
    for one, other in ((rows, np.asfortranarray(rows)), (sparse, wide)):
        found = []
        for given_rows in (one, other):
            state = initial_state(params(views, 3))
            state, _ = update(state, read_chunk(views, {"a": given_rows}))
            found.append(flatten(state)[1])
        for name, array in found[0].items():
            np.testing.assert_allclose(found[1][name], array, rtol=1e-9, err_msg=name)


def test_an_unknown_core_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(dispatch.VARIABLE, "fortran")
    with pytest.raises(InvalidParameter, match="'fortran', but can be compiled or numpy"):
        dispatch.active_core()
