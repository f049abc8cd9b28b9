"""One record after parsing: plain dicts, lists, numbers and bytes become the rows of its views.

The careful way, one record at a time; it takes every form that the contract allows and says what
is wrong with the others. Values themselves are judged later, for a whole batch (`values`).
"""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final, TypeAlias

import numpy as np
from numpy.typing import NDArray

from stream_fs.records import Reason, printable, quoted
from stream_fs.selector.arrays import Indices, Working
from stream_fs.wire.declared import DeclaredView


class RecordError(Exception):
    """A record cannot be used; never leaves the decoder, which makes a `BadRecord` of it."""

    def __init__(self, reason: Reason, detail: str) -> None:
        """The detail may quote the record, so it is cut and made printable."""
        self.reason: Reason = reason
        self.detail = printable(detail)
        super().__init__(self.detail)


VERSION: Final = 1
FIELDS: Final = ("v", "id", "views")

NEEDED: Final = f"a record needs `v`, which is {VERSION}, and `views`, the values by view"
DESCRIBED: Final = 'see schemas/input-record.v1.json, or "Use it as a service" in README.md'
_SHOWN: Final = 3
"""Fields of another kind of record that its detail names, and characters of each."""
_SHOWN_CHARACTERS: Final = 20


@dataclass(frozen=True, slots=True, eq=False)
class SparseRow:
    """A row as it came, its indices not yet checked; `indices` and `values` are equally long."""

    indices: NDArray[Any]
    values: Working


Row: TypeAlias = "bytes | Working | SparseRow"
"""Packed, as an array, or sparse."""


def parse_record(
    document: object, declared: Mapping[str, DeclaredView], *, truths: bool = True
) -> dict[str, Row]:
    """The views that are there. Raises `RecordError`.

    `truths` tells whether the document may contain truth values, which pass as numbers unless each
    one is looked at.
    """
    if not isinstance(document, dict):
        raise RecordError("malformed", f"a record is a map, not {_kind(document)}; {DESCRIBED}")
    _check_fields(document)
    views = document["views"]
    if not isinstance(views, dict):
        raise RecordError("malformed", f"`views` is a map, not {_kind(views)}")
    for name in views:
        if name not in declared:
            known = f"the views are {_some(declared)}"
            raise RecordError("unknown_view", f"view {quoted(name)} is not declared; {known}")
    rows = {
        name: _row(declared[name], given, truths)
        for name, given in views.items()
        if given is not None
    }
    if not rows:
        raise RecordError("all_missing", "every view is missing")
    return rows


def _check_fields(document: dict[Any, Any]) -> None:
    if "v" not in document:
        raise RecordError("version", _incomplete(document))
    version = document["v"]
    if type(version) is not int or version != VERSION:
        raise RecordError("version", f"`v` is {_kind(version)}, not the whole number {VERSION}")
    if "views" not in document:
        raise RecordError("malformed", _incomplete(document))
    unknown = document.keys() - FIELDS
    if unknown:
        name = min(map(quoted, unknown))
        raise RecordError(
            "malformed", f"unknown field {name}; a record has `v`, `id` and `views` only"
        )
    if not isinstance(document.get("id", ""), str):
        raise RecordError("malformed", f"`id` is text, not {_kind(document['id'])}")


def _incomplete(document: dict[Any, Any]) -> str:
    """What a record needs, what this one has, and where that is described."""
    return f"{NEEDED}; this one has {_some(document)}; {DESCRIBED}"


def _some(fields: Mapping[Any, Any]) -> str:
    """The names of the first fields, and how many more there are."""
    names = [quoted(name, _SHOWN_CHARACTERS) for name in islice(fields, _SHOWN)]
    if len(fields) > len(names):
        names.append(f"{len(fields) - len(names)} more")
    return ", ".join(names) or "no fields"


def _row(view: DeclaredView, given: object, truths: bool) -> Row:
    if isinstance(given, bytes):
        if len(given) != view.row_bytes:
            raise RecordError(
                "dimension",
                f"view {view.name!r}: {len(given)} bytes where {view.dimension} values "
                f"of {view.dtype} take {view.row_bytes}",
            )
        return given
    if isinstance(given, list):
        if len(given) != view.dimension:
            raise RecordError(
                "dimension",
                f"view {view.name!r}: {len(given)} values where {view.dimension} are declared",
            )
        numbers = _numbers(given, view, truths)
        if numbers is None:
            at = _first_other(given, (int, float))
            raise RecordError("malformed", f"{view.place(at)}: {_kind(given[at])}, not a number")
        return numbers
    if isinstance(given, dict):
        return _sparse(view, given, truths)
    raise RecordError("malformed", f"view {view.name!r}: {_kind(given)} instead of values")


def _sparse(view: DeclaredView, pair: dict[Any, Any], truths: bool) -> SparseRow:
    if set(pair) != {"i", "x"}:
        raise RecordError(
            "bad_sparse",
            f"view {quoted(view.name)}: values are a list, or a map of `i` and `x`; "
            f"this map has {_some(pair)}",
        )
    indices = _indices(pair["i"])
    if indices is None:
        raise RecordError("bad_sparse", f"view {view.name!r}: {_not_indices(pair['i'])}")
    values = _sparse_values(view, pair["x"], truths)
    if values is None:
        raise RecordError("bad_sparse", _not_values(view, indices, pair["x"]))
    if len(indices) != len(values):
        raise RecordError(
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


def _not_indices(given: object) -> str:
    """Which of the indices is not a whole number of at most 63 bits, or what is there instead."""
    if isinstance(given, bytes):
        return f"`i` is {len(given)} bytes, not indices of 4 bytes each"
    if not isinstance(given, list):
        return f"`i` is {_kind(given)}, not a list of indices"
    too_large = (n for n, index in enumerate(given) if not -(1 << 63) <= index < 1 << 63)
    at = next(too_large) if set(map(type, given)) <= {int} else _first_other(given, (int,))
    return f"{_kind(given[at])} at `i`[{at}], not an index"


def _not_values(view: DeclaredView, indices: NDArray[Any], given: object) -> str:
    """Which value of a sparse pair is not a number, or what is there instead of values."""
    if isinstance(given, bytes):
        size = view.floats.itemsize
        return f"view {view.name!r}: `x` is {len(given)} bytes, not values of {size} bytes each"
    if not isinstance(given, list):
        return f"view {view.name!r}: `x` is {_kind(given)}, not a list of values"
    at = _first_other(given, (int, float))
    place = view.place(int(indices[at])) if at < len(indices) else f"view {view.name!r}"
    return f"{place}: {_kind(given[at])} at `x`[{at}], not a number"


def _first_other(given: list[Any], kinds: tuple[type, ...]) -> int:
    """Index of the first item that is of none of these types."""
    return next(at for at, item in enumerate(given) if type(item) not in kinds)


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
    names = {dict: "a map", list: "a list", str: "text", bytes: "bytes", type(None): "null"}
    return names.get(type(value)) or repr(value)


Fault: TypeAlias = tuple[Reason, str]
"""Why a record cannot be used: the reason, and the particulars."""


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Rows (k × d) of one view, and the records that they belong to (k), increasing."""

    at: Indices
    rows: Working


@dataclass(slots=True)
class ParsedRecords:
    """Rows that were found together, rows of single records, and records that were refused.

    Records are named by their number among those that were read.
    """

    together: dict[str, list[Rows]]
    single: dict[str, list[tuple[int, Row]]]
    refused: dict[int, Fault] = field(default_factory=dict)

    @classmethod
    def nothing(cls, names: Iterable[str]) -> ParsedRecords:
        """A place to collect in."""
        names = tuple(names)
        return cls({name: [] for name in names}, {name: [] for name in names})

    def add(self, record: int, rows: dict[str, Row]) -> None:
        """The views of a single record."""
        for name, row in rows.items():
            self.single[name].append((record, row))

    def refuse(self, record: int, refused: RecordError) -> None:
        """A record that cannot be used."""
        self.refused[record] = (refused.reason, refused.detail)
