"""Whether there is a compiled core, and why not."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from stream_fs.selector.kernels import dispatch

ROOT = Path(__file__).parents[4]


@pytest.fixture(scope="module", autouse=True)
def core() -> None:
    """Instead of each core in turn: which one is active does not matter here."""


@pytest.fixture
def fresh() -> Iterator[None]:
    """What is missing is found out once in a process."""
    dispatch.why_not_compiled.cache_clear()
    yield
    dispatch.why_not_compiled.cache_clear()


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("declare_integers(b'long')", "has wrong signature"),
        ("remove()", "does not export expected C function"),
    ],
)
def test_without_the_blas_of_the_loops_there_is_no_compiled_core(change: str, reason: str) -> None:
    if why := dispatch.why_not_compiled():
        pytest.skip(f"the compiled core: {why}")
    # Modules of SciPy that take the functions themselves are imported before.
    script = f"""
import scipy.cluster.vq, scipy.sparse.linalg
from tests.support import blas
blas.{change}
from stream_fs.selector.kernels.dispatch import why_not_compiled
print(why_not_compiled())"""
    ended = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert ended.stdout.startswith("it cannot be loaded: ")
    assert reason in ended.stdout


@pytest.mark.usefixtures("fresh")
def test_a_core_of_other_sources_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    if why := dispatch.why_not_compiled():
        pytest.skip(f"the compiled core: {why}")
    from stream_fs.selector.kernels import compiled

    dispatch.why_not_compiled.cache_clear()
    monkeypatch.setattr(compiled, "SOURCE_DIGEST", "of other sources")
    assert (
        dispatch.why_not_compiled() == "it was built of another source: install the package again"
    )


@pytest.mark.usefixtures("fresh")
def test_a_wheel_has_no_sources_to_compare(monkeypatch: pytest.MonkeyPatch) -> None:
    if why := dispatch.why_not_compiled():
        pytest.skip(f"the compiled core: {why}")
    from stream_fs.selector.kernels import compiled

    dispatch.why_not_compiled.cache_clear()
    monkeypatch.setattr(compiled, "SOURCE_DIGEST", "of other sources")
    monkeypatch.setattr(dispatch, "FOLDER", dispatch.FOLDER / "absent")
    assert dispatch.why_not_compiled() is None


@pytest.mark.usefixtures("fresh")
def test_a_core_that_was_not_built_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "stream_fs.selector.kernels._native", None)
    monkeypatch.delitem(sys.modules, "stream_fs.selector.kernels.compiled", raising=False)
    with pytest.raises(ModuleNotFoundError) as raised:
        import_module("stream_fs.selector.kernels.compiled")
    monkeypatch.setattr(dispatch, "load_error", raised.value)
    assert dispatch.why_not_compiled() == "it was not built, for want of a C compiler"
