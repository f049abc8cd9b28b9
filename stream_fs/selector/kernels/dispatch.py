"""Which core computes the small loops: the compiled one where it was built, else NumPy.

The variable STREAM_FS_CORE can demand one of them. Both compute the same and differ by rounding;
either gives the same bytes for the same input.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Literal, get_args

from stream_fs.errors import InvalidParameter
from stream_fs.selector.arrays import Indices, Shifted, Working
from stream_fs.selector.kernels import fallback
from stream_fs.selector.kernels.interface import Block, Iteration, Rival, ViewProblem
from stream_fs.selector.steps import UStepConstants

try:
    from stream_fs.selector.kernels import compiled
# A TypeError means that SciPy's BLAS takes integers of another size than the loops do.
except (ImportError, TypeError) as error:
    load_error: Exception | None = error
else:
    load_error = None

Core = Literal["compiled", "numpy"]
VARIABLE = "STREAM_FS_CORE"
FOLDER = Path(__file__).parent / "native"
SOURCES = (
    *("CMakeLists.txt", "_native.pyx", "iteration.c", "loops.h", "neighbours.c", "redundancy.c"),
)
"""In the order of CMakeLists.txt."""


@cache
def why_not_compiled() -> str | None:
    """Why there is no compiled core; None where there is."""
    if isinstance(load_error, ModuleNotFoundError):
        return "it was not built, for want of a C compiler"
    if load_error is not None:
        return f"it cannot be loaded: {load_error}"
    if _source_digest() not in (None, compiled.SOURCE_DIGEST):
        return "it was built of another source: install the package again"
    return None


def native_sources() -> list[Path]:
    """What the compiled core is built from; empty where the package was installed from a wheel."""
    return [FOLDER / name for name in SOURCES if FOLDER.is_dir()]


def _source_digest() -> str | None:
    """The digest that CMakeLists.txt compiles in; None where there are no sources."""
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in native_sources()]
    return hashlib.sha256("".join(digests).encode()).hexdigest() if digests else None


def active_core() -> Core:
    """The core that updates take; raises `InvalidParameter` where a demanded core is missing."""
    demanded = os.environ.get(VARIABLE) or None
    if demanded not in (None, *get_args(Core)):
        raise InvalidParameter(f"{VARIABLE} is {demanded!r}, but can be compiled or numpy")
    why = why_not_compiled()
    if demanded == "compiled" and why:
        raise InvalidParameter(f"{VARIABLE} demands the compiled core, but {why}")
    return "numpy" if demanded == "numpy" or why else "compiled"


def start_iteration(
    problems: Sequence[ViewProblem],
    constants: UStepConstants,
    U: Working,
    start: Sequence[Working],
    repeats: int,
) -> Iteration:
    """The iteration of a chunk on the active core; on NumPy where the compiled one cannot be used.

    It takes neither rows of another precision than U nor shifted rows.
    """
    rows = [problem.data.rows for problem in problems]
    other = any(isinstance(part, Shifted) or part.dtype != U.dtype for part in rows)
    if other or active_core() == "numpy":
        return fallback.NumpyIteration(problems, constants, U, start, repeats)
    return compiled.CompiledIteration(problems, constants, U, start, repeats)


def nearest_rows(products: Working, neighbours: int) -> Indices:
    """See `fallback.nearest_rows`; on the active core."""
    if active_core() == "numpy":
        return fallback.nearest_rows(products, neighbours)
    return compiled.nearest_rows(products, neighbours)


def choose_features(block: Block, rival: Rival, most: int) -> Indices:
    """See `fallback.choose_features`; on the active core."""
    if active_core() == "numpy":
        return fallback.choose_features(block, rival, most)
    return compiled.choose_features(block, rival, most)
