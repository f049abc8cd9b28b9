"""Which core does the small loops: the compiled one where it was built, else numpy.

The variable STREAM_FS_CORE can demand one of them. Both do the same and differ by rounding; either
gives the same bytes whenever it is given the same input.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Literal, get_args

from stream_fs.errors import InvalidParameter
from stream_fs.selector import library
from stream_fs.selector.arrays import Shifted, Working
from stream_fs.selector.choice import Choose, choose_compiled, choose_with_numpy
from stream_fs.selector.compiled import CompiledTurns
from stream_fs.selector.nearest import Nearest, nearest_compiled, nearest_with_numpy
from stream_fs.selector.problem import Problem, Turns
from stream_fs.selector.steps import Ties
from stream_fs.selector.turns import NumpyTurns

Core = Literal["compiled", "numpy"]
VARIABLE = "STREAM_FS_CORE"


def in_use() -> Core:
    """The core that updates take; raises `InvalidParameter` where the one demanded is not there."""
    demanded = os.environ.get(VARIABLE) or None
    if demanded not in (None, *get_args(Core)):
        raise InvalidParameter(f"{VARIABLE} is {demanded!r}, but can be compiled or numpy")
    missing = library.missing()
    if demanded == "compiled" and missing:
        raise InvalidParameter(f"{VARIABLE} demands the compiled core, but {missing}")
    return "numpy" if demanded == "numpy" or missing else "compiled"


def begin(
    problems: Sequence[Problem], tied: Ties, U: Working, start: Sequence[Working], repeats: int
) -> Turns:
    """The turns of a chunk, on the core in use; on numpy where the compiled one cannot be used.

    It takes neither rows of another precision than U nor shifted rows.
    """
    rows = [problem.data.rows for problem in problems]
    other = any(isinstance(part, Shifted) or part.dtype != U.dtype for part in rows)
    turns = NumpyTurns if other or in_use() == "numpy" else CompiledTurns
    return turns(problems, tied, U, start, repeats)


def choice_in_use() -> Choose:
    """How the features of a ranking are chosen, on the core in use."""
    return choose_with_numpy if in_use() == "numpy" else choose_compiled


def nearest_in_use() -> Nearest:
    """How the neighbours of a chunk's rows are found, on the core in use."""
    return nearest_with_numpy if in_use() == "numpy" else nearest_compiled
