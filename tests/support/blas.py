"""SciPy's products of matrices, replaced for programs in C.

The compiled core takes them when it is imported, so this works in a process that has not done so.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from scipy.linalg import cython_blas

GEMM = "sgemm", "dgemm"
_capsules: Any = cython_blas.__pyx_capi__
"""Addresses of functions, each named by its signature in C."""
_kept: list[Any] = []
"""What capsules refer to without keeping it alive."""
_int, _real = ctypes.POINTER(ctypes.c_int), ctypes.POINTER(ctypes.c_double)
_dgemm = ctypes.CFUNCTYPE(
    None, *2 * (ctypes.c_char_p,), *3 * (_int,), _real, *2 * (_real, _int), _real, _real, _int
)
"""op(A), op(B), m, n, k, α, A, its leading dimension, B, its own, β, C, its own."""

_name_of, _address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
_name_of.restype, _name_of.argtypes = ctypes.c_char_p, (ctypes.py_object,)
_address_of.restype, _address_of.argtypes = ctypes.c_void_p, (ctypes.py_object, ctypes.c_char_p)
_capsule = ctypes.pythonapi.PyCapsule_New
_capsule.restype = ctypes.py_object
_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)


def remove() -> None:
    """Leave SciPy without products of matrices."""
    for name in GEMM:
        del _capsules[name]


def declare_integers(kind: bytes) -> None:
    """Make the products appear to take integers of another kind."""
    for name in GEMM:
        signature = _name_of(_capsules[name])
        _replace(name, 1, signature.replace(b"int *", kind + b" *"))


def observe(observer: Callable[[int, int, int], None]) -> None:
    """Call the observer with m, n and k of every product in double precision."""
    signature = _name_of(_capsules["dgemm"])
    original = _dgemm(_address_of(_capsules["dgemm"], signature))

    def multiply(*arguments: Any) -> None:
        observer(*(argument[0] for argument in arguments[2:5]))
        original(*arguments)

    replacement = _dgemm(multiply)
    _kept.append(replacement)
    _replace("dgemm", ctypes.cast(replacement, ctypes.c_void_p).value, signature)


def _replace(name: str, address: int | None, signature: bytes) -> None:
    kept = ctypes.c_char_p(signature)
    _kept.append(kept)
    _capsules[name] = _capsule(address, kept, None)
