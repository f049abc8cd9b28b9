"""One record after parsing: plain maps, lists, numbers and bytes become the rows of its views.

`parse_record` accepts every form of the contract, and names what is wrong with any other document.
The values themselves are checked later, for a whole batch (`collector`).
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

VERSION: Final = 1
FIELDS: Final = ("v", "id", "views")

REQUIRED_FIELDS: Final = f"a record needs `v`, which is {VERSION}, and `views`, the values by view"
DOCUMENTATION: Final = 'see schemas/input-record.v1.json, or "Use it as a service" in README.md'

_LISTED_FIELDS: Final = 3
"""Fields of another kind of document that the detail lists, and characters of each."""
_LISTED_CHARACTERS: Final = 20

Fault: TypeAlias = tuple[Reason, str]
"""Why a record is bad: the reason and the detail."""


class RecordError(Exception):
    """A bad record. Never leaves the decoder, which turns it into a `BadRecord`."""

    def __init__(self, reason: Reason, detail: str) -> None:
        """The detail may quote the record, so it is shortened and made printable."""
        self.reason: Reason = reason
        self.detail = printable(detail)
        super().__init__(self.detail)


@dataclass(frozen=True, slots=True, eq=False)
class SparseRow:
    """A sparse row as received, its indices not yet checked; both arrays have one length."""

    indices: NDArray[Any]
    values: Working


Row: TypeAlias = "bytes | Working | SparseRow"
"""Packed, as an array, or sparse."""


@dataclass(frozen=True, slots=True, eq=False)
class RowBlock:
    """Dense rows (k × d) of one view, and the numbers of their records (k), increasing."""

    records: Indices
    rows: Working


@dataclass(slots=True)
class ParsedRecords:
    """What a reader returns: by view, blocks of rows and single rows; by record, what is wrong.

    Records are numbered in the order in which the reader received them.
    """

    blocks: dict[str, list[RowBlock]]
    rows: dict[str, list[tuple[int, Row]]]
    faults: dict[int, Fault] = field(default_factory=dict)

    @classmethod
    def empty(cls, views: Iterable[str]) -> ParsedRecords:
        """No records yet."""
        views = tuple(views)
        return cls({name: [] for name in views}, {name: [] for name in views})

    def add(self, record: int, rows: dict[str, Row]) -> None:
        """Add the views of one record."""
        for name, row in rows.items():
            self.rows[name].append((record, row))

    def reject(self, record: int, error: RecordError) -> None:
        """Add a bad record."""
        self.faults[record] = (error.reason, error.detail)


def parse_record(
    document: object, declared: Mapping[str, DeclaredView], *, booleans: bool = True
) -> dict[str, Row]:
    """The present views of a parsed document. Raises `RecordError`.

    `booleans` is False where the document cannot contain any: they would pass as numbers, unless
    every value is looked at.
    """
    if not isinstance(document, dict):
        raise RecordError("malformed", f"a record is a map, not {_kind(document)}; {DOCUMENTATION}")
    _check_fields(document)
    views = document["views"]
    if not isinstance(views, dict):
        raise RecordError("malformed", f"`views` is a map, not {_kind(views)}")
    for name in views:
        if name not in declared:
            known = f"the views are {_list_names(declared)}"
            raise RecordError("unknown_view", f"view {quoted(name)} is not declared; {known}")
    rows = {
        name: _row(declared[name], values, booleans)
        for name, values in views.items()
        if values is not None
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
    """The fields that a record needs, those of this document, and where they are documented."""
    return f"{REQUIRED_FIELDS}; this one has {_list_names(document)}; {DOCUMENTATION}"


def _row(view: DeclaredView, values: object, booleans: bool) -> Row:
    if isinstance(values, bytes):
        if len(values) != view.row_bytes:
            raise RecordError(
                "dimension",
                f"view {view.name!r}: {len(values)} bytes where {view.dimension} values "
                f"of {view.dtype} take {view.row_bytes}",
            )
        return values
    if isinstance(values, list):
        if len(values) != view.dimension:
            raise RecordError(
                "dimension",
                f"view {view.name!r}: {len(values)} values where {view.dimension} are declared",
            )
        numbers = _numbers(values, view, booleans)
        if numbers is None:
            feature = _first_of_other_type(values, (int, float))
            label = view.feature_label(feature)
            raise RecordError("malformed", f"{label}: {_kind(values[feature])}, not a number")
        return numbers
    if isinstance(values, dict):
        return _sparse_row(view, values, booleans)
    raise RecordError("malformed", f"view {view.name!r}: {_kind(values)} instead of values")


def _sparse_row(view: DeclaredView, pair: dict[Any, Any], booleans: bool) -> SparseRow:
    if set(pair) != {"i", "x"}:
        raise RecordError(
            "bad_sparse",
            f"view {quoted(view.name)}: values are a list, or a map of `i` and `x`; "
            f"this map has {_list_names(pair)}",
        )
    indices = _sparse_indices(pair["i"])
    if indices is None:
        raise RecordError("bad_sparse", _invalid_indices(view, pair["i"]))
    values = _sparse_values(view, pair["x"], booleans)
    if values is None:
        raise RecordError("bad_sparse", _invalid_values(view, indices, pair["x"]))
    if len(indices) != len(values):
        raise RecordError(
            "bad_sparse",
            f"view {view.name!r}: {len(indices)} indices and {len(values)} values",
        )
    return SparseRow(indices, values)


def _sparse_indices(indices: object) -> NDArray[Any] | None:
    """Packed `u32` or a list of whole numbers; None for anything else."""
    if isinstance(indices, bytes) and len(indices) % 4 == 0:
        return np.frombuffer(indices, "<u4").astype(np.int64)
    if isinstance(indices, list) and set(map(type, indices)) <= {int}:
        try:
            return np.array(array("q", indices), np.int64)
        except OverflowError:
            return None
    return None


def _sparse_values(view: DeclaredView, values: object, booleans: bool) -> Working | None:
    if isinstance(values, bytes) and len(values) % view.floats.itemsize == 0:
        return np.frombuffer(values, view.floats)
    return _numbers(values, view, booleans) if isinstance(values, list) else None


def _numbers(values: list[Any], view: DeclaredView, booleans: bool) -> Working | None:
    """A list in the view's precision, values beyond it as infinity; None if not all are numbers."""
    if booleans and bool in set(map(type, values)):
        return None
    try:
        exact = np.array(array("d", values), np.float64)
    except TypeError:
        return None
    with np.errstate(over="ignore"):
        return exact.astype(view.floats)


def _invalid_indices(view: DeclaredView, indices: object) -> str:
    """Names the first index that is not a whole number of at most 63 bits."""
    if isinstance(indices, bytes):
        return f"view {view.name!r}: `i` is {len(indices)} bytes, not indices of 4 bytes each"
    if not isinstance(indices, list):
        return f"view {view.name!r}: `i` is {_kind(indices)}, not a list of indices"
    if set(map(type, indices)) <= {int}:
        at = next(n for n, index in enumerate(indices) if not -(1 << 63) <= index < 1 << 63)
    else:
        at = _first_of_other_type(indices, (int,))
    return f"view {view.name!r}: {_kind(indices[at])} at `i`[{at}], not an index"


def _invalid_values(view: DeclaredView, indices: NDArray[Any], values: object) -> str:
    """Names the first value of a sparse pair that is not a number."""
    if isinstance(values, bytes):
        size = view.floats.itemsize
        return f"view {view.name!r}: `x` is {len(values)} bytes, not values of {size} bytes each"
    if not isinstance(values, list):
        return f"view {view.name!r}: `x` is {_kind(values)}, not a list of values"
    at = _first_of_other_type(values, (int, float))
    known = at < len(indices)
    label = view.feature_label(int(indices[at])) if known else f"view {view.name!r}"
    return f"{label}: {_kind(values[at])} at `x`[{at}], not a number"


def _first_of_other_type(items: list[Any], types: tuple[type, ...]) -> int:
    """Index of the first item that has none of these types."""
    return next(at for at, item in enumerate(items) if type(item) not in types)


def _list_names(fields: Mapping[Any, Any]) -> str:
    """The names of the first fields, and the number of the others."""
    names = [quoted(name, _LISTED_CHARACTERS) for name in islice(fields, _LISTED_FIELDS)]
    if len(fields) > len(names):
        names.append(f"{len(fields) - len(names)} more")
    return ", ".join(names) or "no fields"


def _kind(value: object) -> str:
    """The type in words, or a number as it is: a detail never quotes more of a record."""
    names = {dict: "a map", list: "a list", str: "text", bytes: "bytes", type(None): "null"}
    return names.get(type(value)) or repr(value)
