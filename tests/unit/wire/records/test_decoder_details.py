"""The detail of a bad record names view, index and feature, or the required fields; it is short."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import msgpack
import numpy as np
import pytest

from stream_fs.records import BadRecord
from stream_fs.wire import DeclaredView, RecordDecoder, RecordFormat

NAMED = (
    DeclaredView("engine", 3, names=("rpm", "oil", "heat")),
    DeclaredView("words", 4, "float64", "unit"),
)
FORMATS: tuple[RecordFormat, RecordFormat] = ("msgpack", "json")
NAN, INFINITY = float("nan"), float("inf")


def encoded(record: Any, format: RecordFormat) -> bytes:
    """As common encoders write it: `json.dumps` writes NaN and Infinity."""
    return json.dumps(record).encode() if format == "json" else bytes(msgpack.packb(record))


def bad(value: bytes, format: RecordFormat, views: tuple[DeclaredView, ...] = NAMED) -> BadRecord:
    """The bad record of a value, which must not depend on its neighbours."""
    good = encoded({"v": 1, "views": {"engine": [1, 2, 3]}}, format)
    (alone,) = RecordDecoder(views, format).decode([value]).bad
    (among,) = RecordDecoder(views, format).decode([good, value, good]).bad
    assert (alone.reason, alone.detail) == (among.reason, among.detail)
    assert among.position == 1
    assert len(alone.detail) <= 300
    assert alone.detail.isprintable()
    return alone


def record(**views: Any) -> dict[str, Any]:
    return {"v": 1, "views": views}


@pytest.mark.parametrize("format", FORMATS)
def test_a_flat_record_lists_the_required_fields(format: RecordFormat) -> None:
    flat = {"temperature": 20.5, "pressure": 1.0, "x" * 5000: 1, "rpm": 2, "oil": 3}
    detail = bad(encoded(flat, format), format).detail
    for part in ("`v`", "`views`", "'temperature'", "'pressure'", "2 more"):
        assert part in detail
    assert "schemas/input-record.v1.json" in detail
    assert '"Use it as a service" in README.md' in detail


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize("record", [{}, {"v": 1}, {"v": 1, "id": "a"}, {"v": 1, "data": {}}])
def test_an_incomplete_record_lists_the_required_fields(
    record: Mapping[str, Any], format: RecordFormat
) -> None:
    result = bad(encoded(record, format), format)
    assert result.reason == ("malformed" if "v" in record else "version")
    assert "`views`" in result.detail
    assert "schemas/input-record.v1.json" in result.detail


def test_the_other_format_is_recognised() -> None:
    good = record(engine=[1, 2, 3])
    assert "stream.format" in bad(encoded(good, "json"), "msgpack").detail
    assert "stream.format" in bad(encoded(good, "msgpack"), "json").detail
    assert "stream.format" not in bad(b"?", "msgpack").detail
    assert "stream.format" not in bad(b"?", "json").detail


@pytest.mark.parametrize("format", FORMATS)
def test_registry_framing_and_empty_values_are_recognised(format: RecordFormat) -> None:
    framed = bad(b"\x00\x00\x00\x00\x07" + encoded(record(engine=[1, 2, 3]), format), format)
    assert "schema registry" in framed.detail
    assert "the value is empty" in bad(b"", format).detail


def test_json_after_a_byte_order_mark_or_spaces_is_recognised() -> None:
    for before in (b"\xef\xbb\xbf", b" \n", b"\xef\xbb\xbf "):
        value = before + encoded(record(engine=[1, 2, 3]), "json")
        assert "it begins like JSON, see stream.format" in bad(value, "msgpack").detail


def test_the_declared_format_is_not_named_as_another() -> None:
    assert "stream.format" not in bad(b'{"v": 1,', "json").detail
    assert "stream.format" not in bad(encoded(record(), "msgpack")[:-1], "msgpack").detail


def test_limits_of_the_parser_are_named_in_terms_of_the_record() -> None:
    flat = bad(encoded({f"column {n}": n for n in range(400)}, "msgpack"), "msgpack").detail
    for part in ("a map of 400 fields", "256 (limits.views)", "`v`", "schemas/input-record"):
        assert part in flat
    long = bad(encoded(record(engine=[0] * 100), "msgpack"), "msgpack").detail
    assert "a list of 100 values; the largest view has 4 features" in long
    two = 2 * encoded(record(engine=[1, 2, 3]), "msgpack")
    assert f"{len(two) // 2} bytes follow the first value" in bad(two, "msgpack").detail


@pytest.mark.parametrize("format", FORMATS)
@pytest.mark.parametrize(
    ("document", "parts"),
    [
        (record(Engine=[1, 2, 3]), ["view 'Engine'", "the views are 'engine', 'words'"]),
        (record(engine={"rpm": 1, "oil": 2}), ["`i` and `x`", "this map has 'rpm', 'oil'"]),
        (record(engine={}), ["`i` and `x`", "this map has no fields"]),
        ({**record(engine=[1, 2, 3]), "time": 7}, ["'time'", "`v`, `id` and `views` only"]),
        ({**record(engine=[1, 2, 3]), "x" * 500: 7}, ["`v`, `id` and `views` only"]),
        ({**record(engine=[1, 2, 3]), "v": 1.0}, ["`v` is 1.0, not the whole number 1"]),
        ({**record(engine=[1, 2, 3]), "v": "1"}, ["`v` is text, not the whole number 1"]),
        ({**record(engine=[1, 2, 3]), "v": None}, ["`v` is null, not the whole number 1"]),
    ],
)
def test_a_wrong_field_names_the_expected_ones(
    document: dict[str, Any], parts: list[str], format: RecordFormat
) -> None:
    detail = bad(encoded(document, format), format).detail
    for part in parts:
        assert part in detail


def test_unknown_fields_of_text_and_of_bytes_are_named() -> None:
    document: dict[Any, Any] = {**record(engine=[1, 2, 3]), b"b": 1, "a": 2}
    assert "unknown field 'a'" in bad(encoded(document, "msgpack"), "msgpack").detail


@pytest.mark.parametrize(
    ("views", "place"),
    [
        ({"engine": [1, NAN, 3]}, "view 'engine', feature 1 ('oil'): nan"),
        ({"engine": [1, 2, -INFINITY]}, "view 'engine', feature 2 ('heat'): -inf"),
        ({"words": [1, 2, 3, INFINITY]}, "view 'words', feature 3: inf"),
        ({"engine": {"i": [0, 2], "x": [1, NAN]}}, "view 'engine', feature 2 ('heat'): nan"),
        ({"words": {"i": [1], "x": [INFINITY]}}, "view 'words', feature 1: inf"),
        ({"engine": [1, 1e39, 3]}, "view 'engine', feature 1 ('oil'): inf in float32"),
    ],
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_non_finite_value_names_its_feature(
    views: dict[str, Any], place: str, format: RecordFormat
) -> None:
    result = bad(encoded(record(**views), format), format)
    assert result.reason == "not_finite"
    assert result.detail.startswith(place)


def test_a_packed_value_names_its_feature() -> None:
    nan = np.array([1, NAN, 3], "<f4").tobytes()
    assert "feature 1 ('oil'): nan" in bad(encoded(record(engine=nan), "msgpack"), "msgpack").detail
    pair = {"i": np.array([2], "<u4").tobytes(), "x": np.array([-1], "<f4").tobytes()}
    result = bad(encoded(record(engine=pair), "msgpack"), "msgpack")
    assert result.reason == "negative"
    assert "feature 2 ('heat'): -1.0" in result.detail


@pytest.mark.parametrize(
    ("views", "place"),
    [
        ({"engine": [1, "2", 3]}, "view 'engine', feature 1 ('oil'): text"),
        ({"engine": [1, 2, None]}, "view 'engine', feature 2 ('heat'): null"),
        ({"engine": [True, 2, 3]}, "view 'engine', feature 0 ('rpm'): True"),
        ({"words": [1, 2, [3], 4]}, "view 'words', feature 2: a list"),
        ({"engine": {"i": [2], "x": ["1"]}}, "view 'engine', feature 2 ('heat'): text"),
        ({"engine": {"i": [0, 1.5], "x": [1, 1]}}, "view 'engine': 1.5 at `i`[1]"),
        ({"engine": {"i": [0, 1 << 63], "x": [1, 1]}}, f"view 'engine': {1 << 63} at `i`[1]"),
        ({"engine": {"i": [0, 3], "x": [1, 1]}}, "view 'engine': index 3 at `i`[1]"),
        ({"engine": {"i": [0, 2, 1], "x": [1, 1, 1]}}, "view 'engine': index 1 at `i`[2]"),
        ({"engine": {"i": 7, "x": [1]}}, "view 'engine': `i` is 7"),
        ({"engine": {"i": [0], "x": "1"}}, "view 'engine': `x` is text"),
        ({"words": [1, 2, -3, 4]}, "view 'words', feature 2: -3.0"),
    ],
)
@pytest.mark.parametrize("format", FORMATS)
def test_a_wrong_value_names_its_feature(
    views: dict[str, Any], place: str, format: RecordFormat
) -> None:
    assert bad(encoded(record(**views), format), format).detail.startswith(place)


def test_long_names_do_not_hide_the_index() -> None:
    view = DeclaredView("\U0010ffff" * 200, 1, names=("\x00" * 100_000,))
    value = encoded({"v": 1, "views": {view.name: [NAN]}}, "msgpack")
    (result,) = RecordDecoder([view]).decode([value]).bad
    assert "feature 0" in result.detail
    assert "nan" in result.detail
    assert len(result.detail) <= 300
    assert result.detail.isprintable()


LITERALS = {
    "a flat record": (b'{"temperature": NaN}', "version"),
    "an unknown view": (b'{"v":1,"views":{"other":[NaN]}}', "unknown_view"),
    "too few values": (b'{"v":1,"views":{"engine":[NaN]}}', "dimension"),
    "not a value": (b'{"v":1,"id":NaN,"views":{"engine":[1,2,3]}}', "malformed"),
    "replaced by a later key": (b'{"v":1,"views":{"engine":[NaN],"engine":[1,2,3]}}', "malformed"),
    "text that is not closed": (b'{"v":1,"views":{"engine":[1,NaN,3]}', "malformed"),
    "other bytes": (b'{"v":1,"id":"\xff","views":{"engine":[1,NaN,3]}}', "malformed"),
    "another encoding": ('{"v":1,"views":{"engine":[1,NaN,3]}}'.encode("utf-16"), "malformed"),
    "an infinite whole number": (
        b'{"v":1,"views":{"engine":[%b,2,3]}}' % (b"9" * 400),
        "malformed",
    ),
    "nested too deeply": (b'{"v":1,"id":%bNaN%b}' % (b"[" * 2000, b"]" * 2000), "malformed"),
}


@pytest.mark.parametrize("name", LITERALS)
def test_literals_never_make_a_record_good(name: str) -> None:
    value, reason = LITERALS[name]
    assert bad(value, "json").reason == reason


def test_only_values_that_are_not_json_are_parsed_twice(monkeypatch: pytest.MonkeyPatch) -> None:
    again: list[str] = []
    loads = json.loads

    def noted(text: str) -> Any:
        again.append(text)
        return loads(text)

    monkeypatch.setattr(json, "loads", noted)
    good = b'{"v":1,"id":"NaN","views":{"engine":[1,2,3]}}'
    wrong = b'{"v":1,"views":{"engine":[1,NaN,3]}}'
    nested = wrong.replace(b"NaN", b"[" * 1000 + b"NaN")
    batch = RecordDecoder(NAMED, "json").decode([good, wrong, nested, good])
    assert batch.good.tolist() == [0, 3]
    assert again == [wrong.decode()]
