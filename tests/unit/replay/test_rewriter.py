"""Conversion of records changes only what was requested."""

from __future__ import annotations

import itertools
from typing import Any

import msgpack
import numpy as np
import orjson
import pytest

from stream_fs.errors import InvalidParameter
from stream_fs.replay import Rewriter
from stream_fs.wire import DeclaredView, RecordDecoder, RecordFormat, Sparse, encode_record

VIEWS = (DeclaredView("a", 3), DeclaredView("b", 2, "float64"), DeclaredView("c", 4))
FORMATS: list[RecordFormat] = ["msgpack", "json"]
RECORD: dict[str, Any] = {
    "a": np.array([0.1, 2, 3], np.float32),
    "b": [0.1, 1 / 3],
    "c": Sparse([1, 3], [0.25, 7]),
}


def encoded(format: RecordFormat, **views: Any) -> bytes:
    return encode_record(views, id="x", format=format, dtypes={"b": "float64"})


def decoded(value: bytes, format: RecordFormat) -> dict[str, Any]:
    batch = RecordDecoder(VIEWS, format).decode([value])
    assert not batch.bad
    return {name: part.dense() for name, part in batch.views.items() if part.present.any()}


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("value", [b"not a record", b"", b"17", b"\x81\xa5views\x01", b'{"v": 1}'])
def test_a_value_that_is_not_a_record_is_not_changed(format: RecordFormat, value: bytes) -> None:
    for other in FORMATS:
        assert Rewriter(VIEWS, format, other, missing=0.9)(value) == value


@pytest.mark.parametrize("format", FORMATS)
def test_a_record_that_needs_no_change_is_returned_byte_for_byte(format: RecordFormat) -> None:
    value = encoded(format, **RECORD) + (b" " if format == "json" else b"")
    assert Rewriter(VIEWS, format, format)(value) is value


@pytest.mark.parametrize(("read", "written"), list(itertools.permutations(FORMATS)))
def test_a_record_in_the_other_format_has_the_same_values(
    read: RecordFormat, written: RecordFormat
) -> None:
    value = encoded(read, **RECORD)
    changed = Rewriter(VIEWS, read, written)(value)
    assert changed != value
    before, after = decoded(value, read), decoded(changed, written)
    assert before.keys() == after.keys() == RECORD.keys()
    for name in RECORD:
        assert np.array_equal(before[name], after[name])


def test_a_record_that_json_cannot_express_is_not_changed() -> None:
    for views in ({"a": b"12345"}, {"unknown": b"1234"}, {"a": msgpack.ExtType(5, b"")}):
        value = msgpack.packb({"v": 1, "views": views})
        assert Rewriter(VIEWS, "msgpack", "json")(value) == value


@pytest.mark.parametrize(("read", "written"), list(itertools.product(FORMATS, FORMATS)))
def test_views_are_removed_and_one_is_kept(read: RecordFormat, written: RecordFormat) -> None:
    rewrite = Rewriter(VIEWS, read, written, missing=0.5, seed=3)
    value = encoded(read, **RECORD)
    kept = [tuple(decoded(rewrite(value), written)) for _ in range(800)]
    assert all(kept)
    # 2^-3 of the records would lose all views, and keep one of the three instead.
    expected = 0.5 + 0.125 / 3
    for name in RECORD:
        share = sum(name in views for views in kept) / len(kept)
        assert share == pytest.approx(expected, abs=0.08)
    again = Rewriter(VIEWS, read, written, missing=0.5, seed=3)
    assert [tuple(decoded(again(value), written)) for _ in range(800)] == kept


def test_the_view_that_is_kept_is_not_a_missing_one() -> None:
    rewrite = Rewriter(VIEWS, "json", "json", missing=0.99)
    value = encoded("json", a=None, b=[1, 2])
    for _ in range(200):
        assert orjson.loads(rewrite(value))["views"]["b"] == [1, 2]


@pytest.mark.parametrize("share", [-0.1, 1.0, float("nan")])
def test_an_invalid_share_is_refused(share: float) -> None:
    with pytest.raises(InvalidParameter, match="share of missing views"):
        Rewriter(VIEWS, "json", "json", missing=share)
