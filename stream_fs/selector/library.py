"""What the sources in C are compiled to, where that was done: how it is found and what it takes.

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
from scipy.linalg import cython_blas

PLACE = Path(__file__).parent
SOURCES = {
    **dict.fromkeys(("turn_float32", "turn_float64"), "turn.c"),
    **dict.fromkeys(("nearest_float32", "nearest_float64"), "nearest.c"),
    "choose": "choose.c",
}
"""What each library is made of."""
OUTDATED = "it was built of another source: install the package again"
ARRAYS = (
    *("rows", "row_starts", "row_columns", "row_values"),
    *("present", "share", "fit", "pull", "still", "part", "norm", "starts", "columns", "springs"),
    *("R0", "Q0", "S0", "V", "Q", "VR", "across", "lengths", "penalties", "R", "VtV"),
    *("products", "right", "both", "left", "g", "terms", "XV", "driving", "P", "pulled"),
    *("sum", "sums", "consensus"),
)
FUNCTIONS = {
    "begin": (),
    "turn": (ctypes.POINTER(ctypes.c_double), ctypes.c_int64, *3 * (ctypes.c_double,)),
}
"""What each takes apart from the views, their number and BLAS."""
PRODUCTS = {np.dtype(np.float32): "sgemm", np.dtype(np.float64): "dgemm"}
"""What multiplies matrices, by precision."""
SIZES = 6
"""How many sizes it takes: of the result and the sum, and how far rows lie apart."""


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
    return None if all(map(gemm, PRODUCTS)) else "SciPy does not offer BLAS in the known form"


@cache
def _opened(name: str) -> ctypes.CDLL:
    return ctypes.CDLL(str(PLACE / f"{name}.so"))


@cache
def turns(precision: np.dtype[Any]) -> Any:
    """turn.c for this precision."""
    library = _opened(f"turn_{precision}")
    for name, further in FUNCTIONS.items():
        function = getattr(library, name)
        function.argtypes = (ctypes.POINTER(View), ctypes.c_int64, ctypes.c_void_p, *further)
        function.restype = ctypes.c_double if name == "turn" else None
    return library


@cache
def gemm(precision: np.dtype[Any]) -> int | None:
    """The address of BLAS's product of matrices, from what SciPy offers to programs in C.

    None where there is none that counts in plain ints, as turn.c does.
    """
    capsule = getattr(cython_blas, "__pyx_capi__", {}).get(PRODUCTS[precision])
    if capsule is None:
        return None
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
    address_of.restype, address_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
    signature: bytes = name_of(capsule)  # "void (char *, char *, int *, …, int *)"
    taken = signature.removeprefix(b"void (").removesuffix(b")").split(b", ")
    return int(address_of(capsule, signature)) if taken.count(b"int *") == SIZES else None


@cache
def nearest(precision: np.dtype[Any]) -> Any:
    """nearest.c for this precision."""
    library = _opened(f"nearest_{precision}")
    library.find_nearest.argtypes = (*2 * (ctypes.c_int64,), *4 * (ctypes.c_void_p,))
    library.find_nearest.restype = None
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
        if array is None:
            continue
        if not array.flags.c_contiguous:
            raise TypeError(f"{name} does not lie as C reads it")
        setattr(view, name, array.ctypes.data)
