"""What turn.c and choose.c are compiled to, where that was done: how it is found and what it takes.

The libraries are built when the package is installed, where there is a C compiler (hatch_build.py).
They know nothing of Python and are loaded with ctypes, so that one serves every version of Python.
"""

from __future__ import annotations

import ctypes
import hashlib
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

PLACE = Path(__file__).parent
SOURCES = {"turn_float32": "turn.c", "turn_float64": "turn.c", "choose": "choose.c"}
"""What each library is made of."""
OUTDATED = "it was built of another source: install the package again"
ARRAYS = (
    *("present", "share", "fit", "pull", "still", "part", "norm", "starts", "columns", "springs"),
    *("R0", "Q0", "S0", "V", "Q", "VR", "lengths", "penalties", "R", "VtV", "products", "right"),
    *("both", "left", "g", "terms", "XV", "driving", "P", "pulled"),
    *("sum", "sums", "consensus"),
)
FUNCTIONS = {
    "spread": (),
    "carry": (),
    "v_step": (ctypes.POINTER(ctypes.c_double), *3 * (ctypes.c_double,)),
    "drive": (ctypes.POINTER(ctypes.c_double),),
    "hold": (),
    "u_step": (ctypes.c_double,),
    "square": (),
    "agree": (),
}
"""What each takes apart from the views and their number."""


class View(ctypes.Structure):
    """`struct view` of turn.c."""

    _fields_ = (
        *((name, ctypes.c_int64) for name in ("N", "n", "d", "K")),
        *((name, ctypes.c_double) for name in ("xi", "eta")),
        *((name, ctypes.c_void_p) for name in ARRAYS),
        *((name, ctypes.c_double) for name in ("loss", "carried", "apart", "length")),
    )


@cache
def missing() -> str | None:
    """Why there is no compiled core; None where there is."""
    for name, source in SOURCES.items():
        digest = hashlib.sha256((PLACE / source).read_bytes()).hexdigest().encode()
        try:
            made_of = (ctypes.c_char * len(digest)).in_dll(_opened(name), "source")
        except OSError:
            return "it was not built, for want of a C compiler"
        except ValueError:
            return OUTDATED
        if made_of.value != digest:
            return OUTDATED
    return None


@cache
def _opened(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(PLACE / f"{name}.so"))


@cache
def turns(precision: np.dtype[Any]) -> Any:
    """turn.c for this precision."""
    library = _opened(f"turn_{precision}")
    for name, further in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes = (ctypes.POINTER(View), ctypes.c_int64, *further)
        function.restype = ctypes.c_double if name == "agree" else None
    return library


@cache
def choice() -> Any:
    """choose.c."""
    library = _opened("choose")
    real, whole, array = ctypes.c_double, ctypes.c_int64, ctypes.c_void_p
    library.choose.argtypes = (whole, *5 * (array,), *3 * (real,), whole, whole, array)
    library.choose.restype = whole
    return library


def point(view: View, arrays: Mapping[str, Any]) -> None:
    """Make the structure point to the arrays, which have to live as long as it is used."""
    for name in ARRAYS:
        array = arrays[name]
        if not array.flags.c_contiguous:
            raise TypeError(f"{name} does not lie as C reads it")
        setattr(view, name, array.ctypes.data)
