"""Records in every form that the contract allows, with the expected rows; and invalid ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
import orjson
from hypothesis import strategies as st

from stream_fs.records import Reason
from stream_fs.wire import Batch, DeclaredView, RecordFormat

VIEWS = (
    DeclaredView("first", 3),
    DeclaredView("second", 5, "float64", "unit"),
    DeclaredView("third", 70, "float32", "none"),
)
VIEWS_BY_NAME = {view.name: view for view in VIEWS}


@dataclass(frozen=True)
class SampleRecord:
    """A record as plain data; by view its dense row, and whether it is a sparse pair."""

    plain: dict[str, Any]
    rows: dict[str, tuple[Any, bool]]

    def encoded(self, format: RecordFormat) -> bytes:
        return orjson.dumps(self.plain) if format == "json" else msgpack.packb(self.plain)


def numbers(view: DeclaredView) -> st.SearchStrategy[float]:
    low = -1e6 if view.transform == "minmax" else 0.0
    single = view.dtype == "float32"
    return st.one_of(
        st.floats(low, 1e6, width=32 if single else 64),
        st.integers(int(low), 1000),
        st.just(0.0),
        st.just(-0.0),
    )


@st.composite
def view_values(draw: st.DrawFn, view: DeclaredView, packing: bool) -> tuple[Any, Any, bool]:
    """The values in the record, the expected row, and whether it is a sparse pair."""
    form = draw(st.sampled_from(["packed", "list", "floats", "sparse"] if packing else ["list"]))
    if not packing and draw(st.booleans()):
        form = "sparse"
    if form == "sparse":
        entries = st.tuples(st.integers(0, view.dimension - 1), numbers(view).map(abs))
        pairs = sorted(dict(draw(st.lists(entries, max_size=6))).items())
        at, x = [i for i, _ in pairs], [value for _, value in pairs]
        row = np.zeros(view.dimension, view.floats)
        row[at] = x
        pair: dict[str, Any] = {"i": at, "x": x}
        if packing and draw(st.booleans()):
            pair["i"] = np.array(at, "<u4").tobytes()
        if packing and draw(st.booleans()):
            pair["x"] = np.array(x, view.floats).tobytes()
        return pair, row, True
    values = draw(st.lists(numbers(view), min_size=view.dimension, max_size=view.dimension))
    row = np.array(values, view.floats)
    if form == "packed":
        return row.tobytes(), row, False
    return ([float(value) for value in values] if form == "floats" else values), row, False


@st.composite
def sample_records(draw: st.DrawFn, packing: bool = True) -> SampleRecord:
    names = draw(st.lists(st.sampled_from(sorted(VIEWS_BY_NAME)), min_size=1, unique=True))
    plain: dict[str, Any] = {}
    rows = {}
    for name in names:
        if len(names) > 1 and name != names[0] and draw(st.booleans()):
            plain[name] = None
        else:
            plain[name], row, sparse = draw(view_values(VIEWS_BY_NAME[name], packing))
            rows[name] = (row, sparse)
    fields: list[tuple[str, Any]] = [("v", 1), ("views", plain)]
    if draw(st.booleans()):
        fields.append(("id", draw(st.text(max_size=300))))
    return SampleRecord(dict(draw(st.permutations(fields))), rows)


def equal_batches(one: Batch, other: Batch) -> bool:
    """Whether two batches are equal, bit for bit."""
    return (
        one.good.tolist() == other.good.tolist()
        and one.bad == other.bad
        and all(view_bytes(one, name) == view_bytes(other, name) for name in one.views)
    )


def view_bytes(batch: Batch, name: str) -> tuple[Any, ...]:
    part = batch.views[name]
    return (
        part.present.tolist(),
        None if part.sparse is None else part.sparse.tolist(),
        str(part.rows.dtype),
        matrix_bytes(part.rows),
    )


def matrix_bytes(matrix: Any) -> tuple[Any, ...]:
    if isinstance(matrix, np.ndarray):
        return (matrix.shape, matrix.tobytes())
    return (
        matrix.shape,
        matrix.data.tobytes(),
        matrix.indices.astype(np.int64).tobytes(),
        matrix.indptr.astype(np.int64).tobytes(),
    )


ONES = [1.0, 1.0, 1.0]
INVALID_RECORDS: list[tuple[Reason, Any]] = [
    ("malformed", [1]),
    ("malformed", {"v": 1}),
    ("malformed", {"v": 1, "views": []}),
    ("malformed", {"v": 1, "views": {"first": ONES}, "when": 3}),
    ("malformed", {"v": 1, "views": {"first": ONES}, "id": 7}),
    ("malformed", {"v": 1, "views": {"first": ONES}, "id": None}),
    ("malformed", {"v": 1, "views": {"first": "abc"}}),
    ("malformed", {"v": 1, "views": {"first": 3}}),
    ("malformed", {"v": 1, "views": {"first": [1, 2, "3"]}}),
    ("malformed", {"v": 1, "views": {"first": [1, 2, None]}}),
    ("malformed", {"v": 1, "views": {"first": [1, 2, True]}}),
    ("malformed", {"v": 1, "views": {"first": [1, 2, [3]]}}),
    ("version", {"views": {"first": ONES}}),
    ("version", {"v": 2, "fields": {}}),
    ("version", {"v": True, "views": {"first": ONES}}),
    ("version", {"v": 1.0, "views": {"first": ONES}}),
    ("unknown_view", {"v": 1, "views": {"first": ONES, "fourth": None}}),
    ("dimension", {"v": 1, "views": {"first": [1, 2]}}),
    ("dimension", {"v": 1, "views": {"first": [1, 2, 3, 4]}}),
    ("dimension", {"v": 1, "views": {"first": []}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [0]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [0], "x": [1], "n": 3}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [0, 1], "x": [1]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [1, 0], "x": [1, 1]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [1, 1], "x": [1, 1]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [3], "x": [1]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [-1], "x": [1]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [0.0], "x": [1]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [True], "x": [1]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [(1 << 64) - 1], "x": [1]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": [0], "x": ["1"]}}}),
    ("bad_sparse", {"v": 1, "views": {"first": {"i": 0, "x": 1}}}),
    ("all_missing", {"v": 1, "views": {}}),
    ("all_missing", {"v": 1, "views": {"first": None, "third": None}}),
    ("not_finite", {"v": 1, "views": {"first": [1, 1e39, 1]}}),
    ("negative", {"v": 1, "views": {"second": [1, 2, 3, -0.5, 1]}}),
    ("negative", {"v": 1, "views": {"first": {"i": [1], "x": [-1]}}}),
    ("negative", {"v": 1, "views": {"first": ONES, "third": [0] * 69 + [-1]}}),
]
