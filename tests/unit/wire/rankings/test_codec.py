from __future__ import annotations

import hashlib
from dataclasses import replace
from typing import Any

import msgpack
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.errors import InvalidMessage
from stream_fs.wire import (
    RankingFormat,
    Top,
    decode_ranking,
    digest,
    encode_ranking,
    has_digest,
    ranking_format,
    ranking_payload,
)
from tests.support.rankings import (
    merged_ranking,
    partition_ranking,
    ranking_history,
    sample_rankings,
)
from tests.support.schemas import errors_in


@pytest.mark.parametrize("top", [None, 1, 3, 1000, 0.1, 1.0])
def test_every_ranking_is_valid_and_read_back(top: Top) -> None:
    for ranking in sample_rankings(top):
        for format in ("json", "msgpack"):
            value = encode_ranking(ranking, format)
            assert decode_ranking(value, format) == ranking
            plain = orjson.loads(value) if format == "json" else msgpack.unpackb(value)
            assert errors_in("ranking", plain) == []


def test_a_merged_ranking_has_no_imputed_rows() -> None:
    assert "imputed" not in orjson.loads(encode_ranking(merged_ranking()))["records"]


@pytest.mark.parametrize("format", ["json", "msgpack"])
def test_a_ranking_without_imputed_rows_is_read_and_written(format: RankingFormat) -> None:
    ranking = partition_ranking(1)
    before = replace(ranking, records=replace(ranking.records, imputed=None))
    value = encode_ranking(before, format)
    plain = orjson.loads(value) if format == "json" else msgpack.unpackb(value)
    assert "imputed" not in plain["records"]
    assert errors_in("ranking", plain) == []
    assert decode_ranking(value, format) == before
    assert encode_ranking(decode_ranking(value, format), format) == value


@pytest.mark.parametrize("format", ["json", "msgpack"])
def test_a_digest_is_that_of_the_ranking_with_imputed_rows_or_without(
    format: RankingFormat,
) -> None:
    ranking = partition_ranking(1)
    value = encode_ranking(ranking, format)
    before = encode_ranking(
        replace(ranking, records=replace(ranking.records, imputed=None)), format
    )
    assert has_digest(value, digest(value), format)
    assert has_digest(value, digest(before), format)
    assert not has_digest(before, digest(value), format)
    assert not has_digest(value, digest(encode_ranking(partition_ranking(0), format)), format)
    assert not has_digest(value, None, format)


@pytest.mark.parametrize(
    "imputed",
    [None, [], {"plain": None}, {"plain": {"rows": 1}}, {"plain": {"rows": -1, "weight": 0.5}}],
)
def test_imputed_rows_have_a_weight(imputed: Any) -> None:
    plain = orjson.loads(encode_ranking(partition_ranking(1)))
    plain["records"]["imputed"] = imputed
    with pytest.raises(InvalidMessage):
        decode_ranking(orjson.dumps(plain))


def test_the_same_ranking_has_the_same_bytes() -> None:
    ranking_history.cache_clear()
    once = ranking_payload(partition_ranking(0))
    ranking_history.cache_clear()
    assert ranking_payload(partition_ranking(0)) == once


def test_key_and_headers_are_those_of_a_cloud_event() -> None:
    sent = ranking_payload(partition_ranking(0))
    assert sent.value is not None
    assert sent.key == b"s/t.in/7"
    assert dict(sent.headers) == {
        "ce_specversion": b"1.0",
        "ce_id": b"1-" + hashlib.sha256(sent.value).hexdigest()[:16].encode(),
        "ce_source": b"/stream-fs/s/t.in/7",
        "ce_type": b"stream-fs.ranking.v1",
        "content-type": b"application/json",
    }
    assert digest(sent.value) == hashlib.sha256(sent.value).hexdigest()
    assert ranking_payload(merged_ranking()).key == b"s"
    odd = replace(partition_ranking(0), stream="a stream ü")
    assert (
        dict(ranking_payload(odd).headers)["ce_source"] == b"/stream-fs/a%20stream%20%C3%BC/t.in/7"
    )


def test_the_content_type_determines_the_format() -> None:
    for format in ("json", "msgpack"):
        assert ranking_format(ranking_payload(partition_ranking(0), format).headers) == format
    for headers in ((), (("content-type", b"text/plain"),)):
        with pytest.raises(InvalidMessage, match="content type"):
            ranking_format(headers)


@pytest.mark.parametrize(
    ("value", "why"),
    [
        (b"", "not json"),
        (b"[]", "no `schema`"),
        (b"{}", "no `schema`"),
        (b'{"schema":2}', "schema 2"),
        (b'{"schema":1}', "not a ranking"),
    ],
)
def test_other_values_are_rejected(value: bytes, why: str) -> None:
    with pytest.raises(InvalidMessage, match=why):
        decode_ranking(value)


@given(st.data())
def test_damaged_rankings_are_rejected_or_read(data: st.DataObject) -> None:
    plain = orjson.loads(encode_ranking(partition_ranking(1, partition_ranking(0))))
    part: Any = plain
    while isinstance(part, dict) and data.draw(st.booleans()):
        key = data.draw(st.sampled_from(sorted(part)))
        if isinstance(part[key], dict) and part[key] and data.draw(st.booleans()):
            part = part[key]
            continue
        part[key] = data.draw(st.sampled_from([None, 3, "x", [], [1], {}, {"x": 1}]))
        break
    try:
        decode_ranking(orjson.dumps(plain))
    except InvalidMessage:
        return


@given(st.binary(max_size=40), st.sampled_from(["json", "msgpack"]))
def test_no_bytes_raise_anything_else(value: bytes, format: RankingFormat) -> None:
    with pytest.raises(InvalidMessage):
        decode_ranking(value, format)


DEEP = b"\x91" * 1020 + b"\x01"


DEEP_JSON = b"[" * 1020 + b"]" * 1020


RANKING = orjson.loads(encode_ranking(sample_rankings(3)[1]))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("schema", [[]]),
        ("schema", True),
        ("sequence", "2"),
        ("sequence", -1),
        ("sequence", {"a": 1}),
        ("stream", ["s"]),
        ("topic", {"a": []}),
        ("partition", 0.5),
        ("as_of", [1]),
        ("as_of", 2**64 - 1),
        ("offsets", {"from": "0", "next": 1}),
        ("records", {"chunk": 1, "total": [], "dead_letters": 0, "missing": {}}),
        ("views", [{"name": "plain", "weight": "1", "features": []}]),
        ("views", [{"name": "plain", "weight": 1.0, "features": [{"index": 0}]}]),
        ("views", [[]]),
        ("selection", {}),
        ("selection", {"plain": None, "named": None}),
        ("fit", {"iterations": 1, "converged": 1, "objective": 0.0, "orthogonality": 0.0}),
        ("sources", [{"topic": "t", "partition": 0}]),
    ],
)
def test_a_field_of_another_type_is_rejected(field: str, value: Any) -> None:
    """Such fields were accepted once, and broke subscribers and displays."""
    with pytest.raises(InvalidMessage):
        decode_ranking(orjson.dumps({**RANKING, field: value}))
    with pytest.raises(InvalidMessage):
        decode_ranking(msgpack.packb({**RANKING, field: value}), "msgpack")


def test_a_deep_ranking_is_rejected() -> None:
    with pytest.raises(InvalidMessage):
        decode_ranking(b'{"schema":' + DEEP_JSON + b"}")
    with pytest.raises(InvalidMessage):
        decode_ranking(b"\x81\xa6schema" + DEEP, "msgpack")
