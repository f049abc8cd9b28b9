"""One record after parsing: plain dicts, lists, numbers and bytes become the rows of its views.

The careful way, one record at a time; it takes every form that the contract allows and says what
is wrong with the others. Values themselves are judged later, for a whole batch (`values`).
"""

from __future__ import annotations

from array import array
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_fs.selector.arrays import Working
from stream_fs.wire.declared import DeclaredView
from stream_fs.wire.refusal import Refused

VERSION: Final = 1
FIELDS: Final = ("v", "id", "views")


@dataclass(frozen=True, slots=True, eq=False)
class SparseRow:
    """A row as it came, its indices not yet checked; `indices` and `values` are equally long."""

    indices: NDArray[Any]
    values: Working


Row: TypeAlias = "bytes | Working | SparseRow"
"""Packed, as an array, or sparse."""


def read_document(
    document: object, declared: Mapping[str, DeclaredView], *, truths: bool = True
) -> dict[str, Row]:
    """The views that are there. Raises `Refused`.

    `truths` tells whether the document may contain truth values, which pass as numbers unless each
    one is looked at.
    """
    if not isinstance(document, dict):
        raise Refused("malformed", f"a record is a map, not {_kind(document)}")
    _check_fields(document)
    views = document["views"]
    if not isinstance(views, dict):
        raise Refused("malformed", f"`views` is a map, not {_kind(views)}")
    for name in views:
        if name not in declared:
            raise Refused("unknown_view", f"view {name!r} is not declared")
    rows = {
        name: _row(declared[name], given, truths)
        for name, given in views.items()
        if given is not None
    }
    if not rows:
        raise Refused("all_missing", "every view is missing")
    return rows


def _check_fields(document: dict[Any, Any]) -> None:
    version = document.get("v")
    if type(version) is not int or version != VERSION:
        raise Refused("version", f"`v` is {_kind(version)}; this reads version {VERSION}")
    unknown = document.keys() - FIELDS
    if unknown:
        raise Refused("malformed", f"unknown field {min(map(repr, unknown))}")
    if not isinstance(document.get("id", ""), str):
        raise Refused("malformed", f"`id` is text, not {_kind(document['id'])}")
    if "views" not in document:
        raise Refused("malformed", "`views` is not there")


def _row(view: DeclaredView, given: object, truths: bool) -> Row:
    if isinstance(given, bytes):
        if len(given) != view.row_bytes:
            raise Refused(
                "dimension",
                f"view {view.name!r}: {len(given)} bytes where {view.dimension} values "
                f"of {view.dtype} take {view.row_bytes}",
            )
        return given
    if isinstance(given, list):
        if len(given) != view.dimension:
            raise Refused(
                "dimension",
                f"view {view.name!r}: {len(given)} values where {view.dimension} are declared",
            )
        numbers = _numbers(given, view, truths)
        if numbers is None:
            raise Refused("malformed", f"view {view.name!r}: a value is not a number")
        return numbers
    if isinstance(given, dict):
        return _sparse(view, given, truths)
    raise Refused("malformed", f"view {view.name!r}: {_kind(given)} instead of values")


def _sparse(view: DeclaredView, pair: dict[Any, Any], truths: bool) -> SparseRow:
    if set(pair) != {"i", "x"}:
        raise Refused("bad_sparse", f"view {view.name!r}: a sparse pair has `i` and `x`, no more")
    indices, values = _indices(pair["i"]), _sparse_values(view, pair["x"], truths)
    if indices is None:
        raise Refused("bad_sparse", f"view {view.name!r}: `i` is not whole numbers")
    if values is None:
        raise Refused("bad_sparse", f"view {view.name!r}: `x` is not numbers")
    if len(indices) != len(values):
        raise Refused(
            "bad_sparse",
            f"view {view.name!r}: {len(indices)} indices and {len(values)} values",
        )
    return SparseRow(indices, values)


def _indices(given: object) -> NDArray[Any] | None:
    """Packed `u32` or a list of whole numbers; None if it is neither."""
    if isinstance(given, bytes) and len(given) % 4 == 0:
        return np.frombuffer(given, "<u4").astype(np.int64)
    if isinstance(given, list) and set(map(type, given)) <= {int}:
        try:
            return np.array(array("q", given), np.int64)
        except OverflowError:
            return None
    return None


def _sparse_values(view: DeclaredView, given: object, truths: bool) -> Working | None:
    if isinstance(given, bytes) and len(given) % view.floats.itemsize == 0:
        return np.frombuffer(given, view.floats)
    return _numbers(given, view, truths) if isinstance(given, list) else None


def _numbers(given: list[Any], view: DeclaredView, truths: bool) -> Working | None:
    """A list in the view's precision, too large values as infinity; None if not all numbers."""
    if truths and bool in set(map(type, given)):
        return None
    try:
        exact = np.array(array("d", given), np.float64)
    except TypeError:
        return None
    with np.errstate(over="ignore"):
        return exact.astype(view.floats)


def _kind(value: object) -> str:
    """In words, or a number as it is: no more of it is written down than that."""
    names = {dict: "a map", list: "a list", str: "text", bytes: "bytes", type(None): "nothing"}
    return names.get(type(value)) or repr(value)
