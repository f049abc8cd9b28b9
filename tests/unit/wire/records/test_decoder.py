from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgpack
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.errors import InvalidParameter
from stream_fs.records import Reason
from stream_fs.selector.arrays import Indices
from stream_fs.selector.chunk import LARGEST
from stream_fs.wire import DeclaredView, Limits, RecordDecoder, RecordFormat
from stream_fs.wire.records import decoder
from stream_fs.wire.records.msgpack_batch import ByteBuffer, FieldOrder
from stream_fs.wire.records.msgpack_reader import MsgpackReader
from stream_fs.wire.records.parser import ParsedRecords
from tests.support.records import (
    INVALID_RECORDS,
    ONES,
    VIEWS,
    VIEWS_BY_NAME,
    SampleRecord,
    equal_batches,
    sample_records,
)

FORMATS: Sequence[RecordFormat] = ("msgpack", "json")


def one_by_one() -> RecordDecoder:
    """A decoder that parses every record by itself."""

    class OneByOne(MsgpackReader):
        def _scan(
            self, _: ByteBuffer, sample_records: Indices, __: FieldOrder, ___: ParsedRecords
        ) -> Indices:
            return sample_records

    decoder = RecordDecoder(VIEWS)
    decoder._reader = OneByOne(VIEWS, Limits())
    return decoder


def check(decoded: Any, expected: Sequence[SampleRecord]) -> None:
    assert decoded.bad == ()
    assert decoded.good.tolist() == list(range(len(expected)))
    for view in VIEWS:
        part = decoded.views[view.name]
        rows = [record.rows[view.name] for record in expected if view.name in record.rows]
        assert part.present.tolist() == [view.name in record.rows for record in expected]
        assert part.rows.dtype == np.dtype(view.dtype)
        assert part.rows.shape == (len(rows), view.dimension)
        matrix = part.dense()
        for row, (wanted, sparse) in enumerate(rows):
            assert matrix[row].tolist() == wanted.tolist()
            if sparse:
                assert part.sparse is not None
                assert part.sparse[row]
        assert (part.sparse is None) == (not any(sparse for _, sparse in rows))


@given(st.lists(sample_records(), max_size=8))
def test_every_form_in_msgpack(expected: list[SampleRecord]) -> None:
    check(RecordDecoder(VIEWS).decode([r.encoded("msgpack") for r in expected]), expected)


@given(st.lists(sample_records(packing=False), max_size=8))
def test_every_form_in_json(expected: list[SampleRecord]) -> None:
    check(RecordDecoder(VIEWS, "json").decode([r.encoded("json") for r in expected]), expected)


@given(st.lists(sample_records(), min_size=1, max_size=4), st.lists(st.integers(0, 3), max_size=20))
def test_batches_and_single_records_decode_alike(few: list[SampleRecord], picks: list[int]) -> None:
    values = [few[pick % len(few)].encoded("msgpack") for pick in picks]
    both = RecordDecoder(VIEWS)
    first, wanted = both.decode(values), one_by_one().decode(values)
    assert equal_batches(first, wanted)
    assert equal_batches(both.decode(values), wanted)  # with the learned field orders


@given(st.lists(st.binary(max_size=60), max_size=6), st.sampled_from(FORMATS))
def test_no_bytes_raise(values: list[bytes], format: RecordFormat) -> None:
    batch = RecordDecoder(VIEWS, format).decode(values)
    assert len(batch) + len(batch.bad) == len(values)


@given(st.data())
def test_damaged_records_never_raise_nor_depend_on_the_batch(data: st.DataObject) -> None:
    whole = [
        r.encoded("msgpack") for r in data.draw(st.lists(sample_records(), min_size=1, max_size=3))
    ]
    values = [*whole]
    for _ in range(6):
        value = bytearray(data.draw(st.sampled_from(whole)))
        at = data.draw(st.integers(0, len(value) - 1))
        if data.draw(st.booleans()):
            value[at] = data.draw(st.integers(0, 255))
        elif data.draw(st.booleans()):
            del value[at : at + data.draw(st.integers(1, 9))]
        else:
            value[at:at] = data.draw(st.binary(min_size=1, max_size=9))
        values.append(bytes(value))
    batch = RecordDecoder(VIEWS).decode(values)
    assert equal_batches(batch, one_by_one().decode(values))
    alone = [RecordDecoder(VIEWS).decode([value]) for value in values]
    assert [bad.reason for bad in batch.bad] == [b.reason for one in alone for b in one.bad]


@given(st.data())
def test_damaged_json_never_raises(data: st.DataObject) -> None:
    value = bytearray(data.draw(sample_records(packing=False)).encoded("json"))
    for _ in range(data.draw(st.integers(1, 4))):
        value[data.draw(st.integers(0, len(value) - 1))] = data.draw(st.integers(0, 255))
    batch = RecordDecoder(VIEWS, "json").decode([bytes(value)])
    assert len(batch) + len(batch.bad) == 1


def test_the_size_of_blocks_does_not_matter(monkeypatch: pytest.MonkeyPatch) -> None:
    values = [packed(first=[i, 0.5, 1]) for i in range(40)]
    values[7] = msgpack.packb({"v": 1, "views": {"first": [7, 7, 7]}})
    values[9] = b"?"
    values[11] = msgpack.packb({"v": 1, "views": {"second": {"i": [1], "x": [2]}}})
    whole = RecordDecoder(VIEWS).decode(values)
    monkeypatch.setattr(decoder, "BLOCK_BYTES", 100)
    parts = RecordDecoder(VIEWS).decode(values)
    assert equal_batches(whole, parts)
    assert len(whole) == 39


WHOLE = msgpack.packb(
    {
        "v": 1,
        "id": "i" * 40,
        "views": {"first": bytes(12), "second": [0.5] * 5, "third": bytes(280)},
    }
)


def test_a_record_that_ends_early_is_malformed() -> None:
    cut = [WHOLE[:length] for length in range(len(WHOLE))]
    for values in (cut, *([value] for value in cut)):
        batch = RecordDecoder(VIEWS).decode(values)
        assert {bad.reason for bad in batch.bad} == {"malformed"}
        assert len(batch.bad) == len(values)


def test_a_map_has_as_many_entries_as_it_announces() -> None:
    fields, views = WHOLE[:1], WHOLE.index(b"views") + 5
    for wrong in (b"\x80", b"\x82", b"\x84", b"\x8f", b"\xde\x00\x04"):
        values = [wrong + WHOLE[len(fields) :], WHOLE[:views] + wrong + WHOLE[views + 1 :]]
        batch = RecordDecoder(VIEWS).decode([WHOLE, *values, WHOLE])
        assert [bad.reason for bad in batch.bad] == ["malformed", "malformed"]
    long = [
        b"\xde\x00\x03" + WHOLE[1:],
        WHOLE[:views] + b"\xde\x00\x03" + WHOLE[views + 1 :],
        WHOLE[: views - 6].replace(b"\xd9\x28", b"\xda\x00\x28") + WHOLE[views - 6 :],
    ]
    assert RecordDecoder(VIEWS).decode([WHOLE, *long]).bad == ()


def test_the_scan_reads_the_usual_forms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ids of any length, missing views, plain lists and a second order: none is parsed alone."""
    swapped = [
        msgpack.packb({"views": {"third": row("third"), "first": row("first")}, "v": 1})
        for _ in range(20)
    ]
    usual = [
        msgpack.packb(
            {
                "v": 1,
                "id": "é" * (i % 120),
                "views": {
                    "first": row("first") if i % 2 else None,
                    "second": [0.5] * 5,
                    **({"third": row("third")} if i % 3 else {}),
                },
            }
        )
        for i in range(200)
    ]
    alone: list[bytes] = []
    parse = MsgpackReader._parse

    def noted(self: MsgpackReader, value: bytes) -> object:
        alone.append(value)
        return parse(self, value)

    monkeypatch.setattr(MsgpackReader, "_parse", noted)
    every = {name: row(name) for name in VIEWS_BY_NAME}
    version_last = [msgpack.packb({"views": every, "v": 1})] * 20
    batch = RecordDecoder(VIEWS).decode(usual + swapped + version_last)
    assert len(batch) == 240
    assert alone == swapped[:1] + version_last[:1]


def test_a_list_of_floats_and_wide_integers_is_not_read_as_floats() -> None:
    mixed = [0.5, 1 << 40, 0.5, 0.5, 0.5]
    value = msgpack.packb({"v": 1, "views": {"second": mixed}})
    assert len(value) == len(msgpack.packb({"v": 1, "views": {"second": [0.5] * 5}}))
    assert RecordDecoder(VIEWS).decode([value]).views["second"].dense().tolist() == [mixed]


def test_more_views_than_a_short_map_holds() -> None:
    views = [DeclaredView(f"view-{number}", 1) for number in range(20)]
    value = msgpack.packb({"v": 1, "views": {view.name: b"\0\0\x80?" for view in views}})
    batch = RecordDecoder(views).decode([value] * 3)
    assert {part.dense().tolist()[2][0] for part in batch.views.values()} == {1.0}


def row(name: str) -> bytes:
    return bytes(VIEWS_BY_NAME[name].row_bytes)


def packed(**views: list[float]) -> bytes:
    named = {name: np.array(v, VIEWS_BY_NAME[name].floats).tobytes() for name, v in views.items()}
    return bytes(msgpack.packb({"v": 1, "views": named}))


@pytest.mark.parametrize(
    ("reason", "plain"), INVALID_RECORDS, ids=map(str, range(len(INVALID_RECORDS)))
)
@pytest.mark.parametrize("format", FORMATS)
def test_reasons(reason: Reason, plain: Any, format: RecordFormat) -> None:
    fine, value = {"v": 1, "views": {"first": ONES}}, msgpack.packb(plain)
    values = [msgpack.packb(fine), value, msgpack.packb(fine)]
    if format == "json":
        values = [orjson.dumps(record) for record in (fine, plain, fine)]
    batch = RecordDecoder(VIEWS, format).decode(values)
    assert [(bad.position, bad.reason) for bad in batch.bad] == [(1, reason)]
    assert batch.bad[0].detail
    assert batch.good.tolist() == [0, 2]
    assert batch.views["first"].rows.shape == (2, 3)
    assert batch.views["third"].rows.shape == (0, 70)


BYTES: list[tuple[Reason, bytes | None]] = [
    ("tombstone", None),
    ("malformed", b""),
    ("malformed", b"\x81"),
    ("malformed", b"\xc1"),
    ("malformed", b"\x81" * 3000),
    ("malformed", b"\xdd\x00\x00\x00\x9c" * 2000),
    ("malformed", b"\xdf\xff\xff\xff\xff"),
    ("malformed", b"\xdd\xff\xff\xff\xff"),
    ("malformed", b"\xc6\xff\xff\xff\xff"),
    ("malformed", msgpack.packb({"v": 1, "views": {1: ONES}})),
    ("malformed", msgpack.packb({"v": 1, "views": {"first": ONES}, b"x": 1, "y": 2})),
    ("unknown_view", msgpack.packb({"v": 1, "views": {b"first": ONES, "first": ONES}})),
    ("bad_sparse", msgpack.packb({"v": 1, "views": {"first": {b"i": [], "x": []}}})),
    ("malformed", msgpack.packb({"v": 1, "views": {"first": msgpack.ExtType(3, b"")}})),
    ("malformed", msgpack.packb({"v": 1, "views": {"first": msgpack.Timestamp(1, 2)}})),
    ("malformed", packed(first=ONES) + b"\x00"),
    ("malformed", packed(first=ONES)[:-1]),
    ("malformed", msgpack.packb({"v": 1, "id": b"abc", "views": {"first": bytes(12)}})),
    ("dimension", msgpack.packb({"v": 1, "views": {"first": bytes(13)}})),
    ("unknown_view", b"\x82\xa1v\x01\xa5views\x81\xa2\xff\n\xc0"),
    ("bad_sparse", msgpack.packb({"v": 1, "views": {"first": {"i": b"123", "x": []}}})),
    ("bad_sparse", msgpack.packb({"v": 1, "views": {"first": {"i": [], "x": b"123"}}})),
    ("not_finite", packed(first=[1, float("nan"), 1])),
    ("not_finite", packed(first=[1, float("-inf"), 1])),
    ("not_finite", packed(second=[1, 1, 1, 1, float("inf")])),
    ("negative", packed(second=[1, 1, -1, 1, 1])),
    ("too_large", bytes((1 << 20) + 1)),
]


@pytest.mark.parametrize(("reason", "value"), BYTES, ids=map(str, range(len(BYTES))))
def test_reasons_of_bytes(reason: Reason, value: bytes | None) -> None:
    fine = packed(first=[-1, 2, 3], second=[1, 2, 3, 4, 5])
    batch = RecordDecoder(VIEWS).decode([fine, value, fine])
    assert [(bad.position, bad.reason) for bad in batch.bad] == [(1, reason)]
    assert batch.bad[0].detail.isprintable()
    assert batch.good.tolist() == [0, 2]
    assert batch.views["first"].dense().tolist() == [[-1, 2, 3], [-1, 2, 3]]


def test_too_large_a_value_for_transform_none() -> None:
    views = [DeclaredView("raw", 2, "float64", "none"), DeclaredView("any", 1, "float64")]
    values = [
        msgpack.packb({"v": 1, "views": {"raw": [LARGEST, 0.0], "any": [1e300]}}),
        msgpack.packb({"v": 1, "views": {"raw": [10 * LARGEST, 0.0]}}),
        msgpack.packb({"v": 1, "views": {"raw": {"i": [1], "x": [10 * LARGEST]}}}),
    ]
    batch = RecordDecoder(views).decode(values)
    assert [(bad.position, bad.reason) for bad in batch.bad] == [
        (1, "out_of_range"),
        (2, "out_of_range"),
    ]


@pytest.mark.parametrize("literal", [b"NaN", b"Infinity", b"-Infinity", b"1e999"])
def test_json_has_no_non_finite_numbers(literal: bytes) -> None:
    value = b'{"v":1,"views":{"first":[1,2,%s]}}' % literal
    assert RecordDecoder(VIEWS, "json").decode([value]).bad[0].reason == "not_finite"


def test_the_last_of_duplicate_keys_counts() -> None:
    first, second = row("first"), np.array(ONES, "<f4").tobytes()
    views = b"\x82" + b"".join(b"\xa5first\xc4\x0c" + v for v in (first, second))
    batch = RecordDecoder(VIEWS).decode([b"\x82\xa1v\x01\xa5views" + views])
    assert batch.views["first"].dense().tolist() == [ONES]


def test_booleans_in_an_id_are_allowed() -> None:
    value = orjson.dumps({"v": 1, "id": "true", "views": {"first": [1, 2, 3]}})
    assert len(RecordDecoder(VIEWS, "json").decode([value])) == 1


def test_nothing_to_decode() -> None:
    for values in ([], [None], [b"?", None]):
        batch = RecordDecoder(VIEWS).decode(values)
        assert len(batch) == 0
        assert len(batch.bad) == len(values)
        assert batch.missing() == {"first": 0, "second": 0, "third": 0}


def test_limits_are_kept() -> None:
    value = packed(first=ONES)
    assert len(RecordDecoder(VIEWS, limits=Limits(len(value))).decode([value])) == 1
    short = RecordDecoder(VIEWS, limits=Limits(len(value) - 1))
    assert short.decode([value, None, value]).bad[2].reason == "too_large"


def test_invalid_declarations() -> None:
    wrong: list[Callable[[], object]] = [
        lambda: RecordDecoder([]),
        lambda: RecordDecoder([VIEWS[0], VIEWS[0]]),
        lambda: RecordDecoder(VIEWS, "xml"),  # type: ignore[arg-type]  # the point of the test
        lambda: RecordDecoder(VIEWS, limits=Limits(views=2)),
        lambda: Limits(record_bytes=0),
        lambda: DeclaredView("", 3),
        lambda: DeclaredView("a", 0),
        lambda: DeclaredView("a", 3, "float16"),  # type: ignore[arg-type]  # the point of the test
        lambda: DeclaredView("a", 3, transform="log"),  # type: ignore[arg-type]  # likewise
    ]
    for make in wrong:
        with pytest.raises(InvalidParameter):
            make()
