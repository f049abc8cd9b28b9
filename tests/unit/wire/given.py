"""Records in every form that the contract allows, and what must come out of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import msgpack
import numpy as np
import orjson
from hypothesis import strategies as st

from stream_fs.wire import Batch, DeclaredView, RecordFormat

VIEWS = (
    DeclaredView("first", 3),
    DeclaredView("second", 5, "float64", "unit"),
    DeclaredView("third", 70, "float32", "none"),
)
BY_NAME = {view.name: view for view in VIEWS}


@dataclass(frozen=True)
class Given:
    """A record as plain data, and by view its dense row and whether it is a sparse pair."""

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
    """What stands in the record, the row that it means, and whether it is a sparse pair."""
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
def records(draw: st.DrawFn, packing: bool = True) -> Given:
    names = draw(st.lists(st.sampled_from(sorted(BY_NAME)), min_size=1, unique=True))
    plain: dict[str, Any] = {}
    rows = {}
    for name in names:
        if len(names) > 1 and name != names[0] and draw(st.booleans()):
            plain[name] = None
        else:
            plain[name], row, sparse = draw(view_values(BY_NAME[name], packing))
            rows[name] = (row, sparse)
    fields: list[tuple[str, Any]] = [("v", 1), ("views", plain)]
    if draw(st.booleans()):
        fields.append(("id", draw(st.text(max_size=300))))
    return Given(dict(draw(st.permutations(fields))), rows)


def same(one: Batch, other: Batch) -> bool:
    """Whether two batches are equal to the last bit."""
    return (
        one.good.tolist() == other.good.tolist()
        and one.bad == other.bad
        and all(part_bytes(one, name) == part_bytes(other, name) for name in one.views)
    )


def part_bytes(batch: Batch, name: str) -> tuple[Any, ...]:
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
