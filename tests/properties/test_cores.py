"""The cores of the selector do the same: they differ by rounding alone."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from types import SimpleNamespace
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
    library,
    params,
    read_chunk,
    update,
)
from stream_fs.selector import core as cores
from stream_fs.selector.choice import Block, Rival, choose_compiled, choose_with_numpy
from stream_fs.selector.compiled import CompiledTurns
from stream_fs.selector.nearest import nearest_compiled, nearest_with_numpy
from stream_fs.selector.parameters import Preset
from stream_fs.selector.state import flatten
from stream_fs.selector.turns import NumpyTurns
from tests.properties.streams import SEEDS

CLOSE = {np.float32: 2e-3, np.float64: 1e-9}
VIEWS = [View("a", 12), View("b", 30), View("c", 5)]
ROWS = 60
SIGNATURES: dict[bytes, bytes] = {}
"""By kind of integer; a capsule does not keep its name alive."""


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
        patch.setenv(cores.VARIABLE, core)
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
def test_they_differ_by_rounding_alone(
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
def test_they_choose_the_same_features(seed: int, n: int, most: int, rival: float) -> None:
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
    found = cores.choice_in_use()(block, other, most)
    assert found.tolist() == choose_with_numpy(block, other, most).tolist()


@given(
    seed=SEEDS,
    n=st.integers(0, 90),
    neighbours=st.integers(1, 30),
    kinds=st.integers(1, 100),
    precision=st.sampled_from([np.float32, np.float64]),
)
def test_they_find_the_same_neighbours(
    seed: int, n: int, neighbours: int, kinds: int, precision: Any
) -> None:
    """Among copies and ties, which rounding puts at a distance a little less than nothing."""
    rng = np.random.default_rng(seed)
    rows = rng.random((kinds, 6))[rng.integers(kinds, size=n)].astype(precision)
    products = rows @ rows.T
    found = cores.nearest_in_use()(products, neighbours)
    expected = nearest_with_numpy(products, neighbours)
    assert found.shape == (n, max(min(neighbours, n - 1), 0))
    np.testing.assert_array_equal(np.sort(found), np.sort(expected))


def test_it_is_the_core_that_was_demanded(core: str, monkeypatch: pytest.MonkeyPatch) -> None:
    used = []
    for kind in (NumpyTurns, CompiledTurns):
        turn = kind.turn

        def spy(self: Any, a: Any, kind: Any = kind, turn: Any = turn) -> Any:
            used.append(kind)
            return turn(self, a)

        monkeypatch.setattr(kind, "turn", spy)
    assert cores.in_use() == core
    choosing = {"numpy": choose_with_numpy, "compiled": choose_compiled}
    assert cores.choice_in_use() is choosing[core]
    finding = {"numpy": nearest_with_numpy, "compiled": nearest_compiled}
    assert cores.nearest_in_use() is finding[core]
    outcome(core, "default", np.float32, False, 1)
    assert set(used) == {{"numpy": NumpyTurns, "compiled": CompiledTurns}[core]}


def test_a_core_that_is_not_there_is_not_replaced_in_silence(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(library, "missing", lambda: "it was not built")
    monkeypatch.setenv(cores.VARIABLE, "compiled")
    with pytest.raises(InvalidParameter, match="demands the compiled core, but it was not built"):
        cores.in_use()
    monkeypatch.delenv(cores.VARIABLE)
    assert cores.in_use() == "numpy"


@pytest.mark.parametrize("form", [b"long *", None], ids=["of other integers", "not at all"])
def test_without_the_blas_that_it_knows_there_is_no_compiled_core(
    form: bytes | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if why := library.missing():
        pytest.skip(f"the compiled core: {why}")
    offered = {} if form is None else {name: capsule(form) for name in ("sgemm", "dgemm")}
    monkeypatch.setattr(library, "cython_blas", SimpleNamespace(__pyx_capi__=offered))
    for known in (library.gemm, library.missing):
        known.cache_clear()
    try:
        assert library.missing() == "SciPy does not offer BLAS in the known form"
    finally:
        for known in (library.gemm, library.missing):
            known.cache_clear()


def capsule(integers: bytes) -> Any:
    """What SciPy would offer if BLAS counted in these integers."""
    sizes = 3 * (integers,)
    taken = (*2 * (b"char *",), *sizes, *2 * (b"s *", b"s *", integers), b"s *", integers)
    name = SIGNATURES.setdefault(integers, b"void (" + b", ".join(taken) + b")")
    make = ctypes.pythonapi.PyCapsule_New
    make.restype = ctypes.py_object
    make.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
    return make(1, name, None)


def test_rows_in_any_order_give_the_same() -> None:
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


def test_a_core_that_does_not_exist_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(cores.VARIABLE, "fortran")
    with pytest.raises(InvalidParameter, match="'fortran', but can be compiled or numpy"):
        cores.in_use()
