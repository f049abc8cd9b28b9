from __future__ import annotations

import hashlib
from dataclasses import replace
from functools import cache
from typing import Any

import msgpack
import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stream_fs.errors import InvalidMessage, InvalidParameter
from stream_fs.selector import (
    Ranking,
    Report,
    View,
    initial_state,
    params,
    rank,
    read_chunk,
    update,
)
from stream_fs.selector.imputation import Imputation
from stream_fs.wire import (
    RankingFormat,
    RankingMessage,
    RankingSource,
    Top,
    decode_ranking,
    digest,
    encode_ranking,
    has_digest,
    largest_ranking,
    merged_message,
    published_counts,
    ranking_format,
    ranking_message,
    ranking_payload,
)
from stream_fs.wire.rankings.message import leading, leading_count, leading_overlap
from tests.unit.wire.schemas import errors_in

PARAMS = params(
    [View("plain", 30), View("named", 4, names=("a", 'quo"te', "ü" * 40, "d"))], clusters=2
)


@cache
def history() -> list[tuple[Ranking, Report]]:
    rng = np.random.default_rng(11)
    state, told = initial_state(PARAMS), []
    for _ in range(3):
        named = rng.random((60, 4))
        named[:7] = np.nan
        inputs = {"plain": rng.random((60, 30)), "named": named}
        state, report = update(state, read_chunk(PARAMS.views, inputs))
        told.append((rank(state), report))
    return told


def message(number: int, previous: RankingMessage | None = None, top: Top = 3) -> RankingMessage:
    ranking, report = history()[number]
    return ranking_message(
        ranking,
        report,
        stream="s",
        topic="t.in",
        partition=7,
        offsets=(61 * number, 61 * (number + 1)),
        as_of=1_700_000_000_000 + number,
        dead_letters=1,
        counts=published_counts(PARAMS, top),
        previous=None if previous is None else previous.chosen,
    )


def merged(top: Top = 3) -> RankingMessage:
    return merged_message(
        history()[2][0],
        stream="s",
        sequence=5,
        sources=[RankingSource("t.in", 7, 3), RankingSource("t.in", 8, 1)],
        as_of=1_700_000_000_000,
        dead_letters=4,
        counts=published_counts(PARAMS, top),
        previous=None,
    )


def messages(top: Top) -> list[RankingMessage]:
    first = message(0, top=top)
    return [first, message(1, first, top), merged(top)]


@pytest.mark.parametrize("top", [None, 1, 3, 1000, 0.1, 1.0])
def test_every_ranking_is_valid_and_read_back(top: Top) -> None:
    for made in messages(top):
        for format in ("json", "msgpack"):
            value = encode_ranking(made, format)
            assert decode_ranking(value, format) == made
            plain = orjson.loads(value) if format == "json" else msgpack.unpackb(value)
            assert errors_in("ranking", plain) == []


def test_what_a_ranking_tells() -> None:
    ranking, report = history()[1]
    plain = orjson.loads(encode_ranking(message(1, message(0))))
    assert plain["sequence"] == 2
    assert plain["offsets"] == {"from": 61, "next": 122}
    assert plain["model"] == PARAMS.fingerprint
    assert plain["records"] == {
        "chunk": 60,
        "total": 120,
        "dead_letters": 1,
        "missing": {"plain": 0, "named": 7},
        "imputed": {
            "plain": {"rows": 0, "weight": 1.0},
            "named": {"rows": 7, "weight": pytest.approx(106 / 120)},
        },
    }
    assert plain["fit"]["objective"] == report.objective[-1]
    assert plain["fit"]["orthogonality"] == max(report.orthogonality.values())
    for view, told in zip(ranking.views, plain["views"], strict=True):
        assert told["weight"] == view.alpha
        assert [f["index"] for f in told["features"]] == view.order[:3].tolist()
        assert [f["relevance"] for f in told["features"]] == view.scores[view.order[:3]].tolist()
        assert [f.get("name", f["index"]) for f in told["features"]] == view.top(3)


def test_a_merged_ranking_is_of_no_chunk_whose_rows_were_imputed() -> None:
    assert "imputed" not in orjson.loads(encode_ranking(merged()))["records"]


@pytest.mark.parametrize("format", ["json", "msgpack"])
def test_a_ranking_of_before_the_field_is_read_and_written_as_it_was(format: RankingFormat) -> None:
    made = message(1)
    before = replace(made, records=replace(made.records, imputed=None))
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
    made = message(1)
    value = encode_ranking(made, format)
    before = encode_ranking(replace(made, records=replace(made.records, imputed=None)), format)
    assert has_digest(value, digest(value), format)
    assert has_digest(value, digest(before), format)
    assert not has_digest(before, digest(value), format)
    assert not has_digest(value, digest(encode_ranking(message(0), format)), format)
    assert not has_digest(value, None, format)


@pytest.mark.parametrize(
    "imputed",
    [None, [], {"plain": None}, {"plain": {"rows": 1}}, {"plain": {"rows": -1, "weight": 0.5}}],
)
def test_what_is_imputed_has_rows_and_a_weight(imputed: Any) -> None:
    plain = orjson.loads(encode_ranking(message(1)))
    plain["records"]["imputed"] = imputed
    with pytest.raises(InvalidMessage):
        decode_ranking(orjson.dumps(plain))


def test_the_selection_is_compared_with_the_ranking_before() -> None:
    first = message(0)
    assert first.selection is None
    best = message(1).chosen
    before = {"plain": [*best["plain"][:2], 99], "named": list(best["named"])}
    ranking, report = history()[1]
    made = ranking_message(
        ranking,
        report,
        stream="s",
        topic="t",
        partition=0,
        offsets=(0, 1),
        as_of=0,
        dead_letters=0,
        counts=published_counts(PARAMS, 3),
        previous=before,
    )
    assert made.selection is not None
    change = made.selection["plain"]
    assert (change.entered, change.left) == ((best["plain"][2],), (99,))
    assert change.overlap == pytest.approx(2 / 3)
    assert made.selection["named"].overlap == 1.0
    assert made.selection["named"].entered == ()


@pytest.mark.parametrize(
    ("published", "dimension", "count"),
    [(1, 1, 1), (1, 2, 1), (2, 2, 1), (5, 10, 5), (6, 10, 5), (20, 40, 20), (21, 40, 10)],
)
def test_leading_features_are_at_most_half_of_a_view(
    published: int, dimension: int, count: int
) -> None:
    assert leading_count(published, dimension) == count


def test_the_overlap_of_leading_features_shows_what_that_of_all_published_hides() -> None:
    now = {"plain": list(range(30)), "named": [0, 1, 2, 3]}
    before = {"plain": list(range(7, 30)) + list(range(7)), "named": [3, 2, 1, 0]}
    assert leading(now, PARAMS) == {"plain": frozenset(range(10)), "named": {0, 1}}
    overlap = leading_overlap(leading(now, PARAMS), leading(before, PARAMS))
    assert overlap == {"plain": 0.3, "named": 0.0}
    assert leading_overlap(leading(now, PARAMS), None) == {}


def test_leading_features_are_known_without_an_order_where_all_published_ones_lead() -> None:
    chosen = {"plain": [3, 7, 9], "named": [0, 2, 3]}
    assert leading(chosen, PARAMS, ordered=False) == {"plain": {3, 7, 9}}


def test_the_same_ranking_has_the_same_bytes() -> None:
    history.cache_clear()
    once = ranking_payload(message(0))
    history.cache_clear()
    assert ranking_payload(message(0)) == once


def test_key_and_headers_are_those_of_a_cloud_event() -> None:
    sent = ranking_payload(message(0))
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
    assert ranking_payload(merged()).key == b"s"
    odd = replace(message(0), stream="a stream ü")
    assert (
        dict(ranking_payload(odd).headers)["ce_source"] == b"/stream-fs/a%20stream%20%C3%BC/t.in/7"
    )


def test_the_content_type_tells_the_format() -> None:
    for format in ("json", "msgpack"):
        assert ranking_format(ranking_payload(message(0), format).headers) == format
    for headers in ((), (("content-type", b"text/plain"),)):
        with pytest.raises(InvalidMessage, match="content type"):
            ranking_format(headers)


@pytest.mark.parametrize("top", [None, 2, 0.3])
@pytest.mark.parametrize("format", ["json", "msgpack"])
def test_no_ranking_is_larger_than_the_largest(top: Top, format: RankingFormat) -> None:
    counts = published_counts(PARAMS, top)
    largest = largest_ranking(PARAMS, counts, stream="s", topic="t.in", partitions=2, format=format)
    for made in messages(top):
        sent = ranking_payload(made, format)
        assert sent.value is not None
        assert sent.key is not None
        headers = sum(len(name) + len(text or b"") for name, text in sent.headers)
        assert len(sent.key) + len(sent.value) + headers < largest
        assert largest < 3 * len(sent.value) + 2000


@given(st.lists(st.text(max_size=8), min_size=6, max_size=6), st.integers(1, 6), st.data())
def test_the_largest_ranking_has_the_longest_names(
    names: list[str], count: int, data: st.DataObject
) -> None:
    with_names = params([View("v", 6, names=tuple(names))], clusters=2)
    order = data.draw(st.permutations(range(6)))
    ranking, report = history()[0]
    view = replace(
        ranking.views[0],
        name="v",
        order=np.array(order),
        scores=-np.full(6, 2.2250738585072014e-308),
        names=tuple(names),
    )
    made = ranking_message(
        replace(ranking, views=(view,)),
        replace(report, missing={"v": 0.5}, imputed={"v": Imputation(1 << 62, 1 / 3)}),
        stream="s",
        topic="t",
        partition=1 << 31,
        offsets=(1 << 62, 1 << 62),
        as_of=1 << 62,
        dead_letters=1 << 62,
        counts={"v": count},
        previous={"v": data.draw(st.permutations(range(6)))[:count]},
    )
    for format in ("json", "msgpack"):
        bound = largest_ranking(with_names, {"v": count}, stream="s", topic="t", format=format)
        assert len(encode_ranking(made, format)) + 512 < bound


def test_counts() -> None:
    assert published_counts(PARAMS, None) == {"plain": 30, "named": 4}
    assert published_counts(PARAMS, 10) == {"plain": 10, "named": 4}
    assert sum(published_counts(PARAMS, 0.5).values()) == 17
    wrong: list[Any] = [0, -1, 0.0, 1.5, True, "all"]
    for top in wrong:
        with pytest.raises(InvalidParameter):
            published_counts(PARAMS, top)


def test_numbers_are_finite() -> None:
    ranking, report = history()[0]
    told: dict[str, Any] = {
        "stream": "s",
        "topic": "t",
        "partition": 0,
        "offsets": (0, 1),
        "as_of": 0,
        "dead_letters": 0,
        "counts": published_counts(PARAMS, 3),
        "previous": None,
    }
    view = replace(ranking.views[0], scores=np.full(30, np.nan))
    for broken_ranking, broken_report in (
        (replace(ranking, views=(view, ranking.views[1])), report),
        (ranking, replace(report, objective=(1.0, float("inf")))),
    ):
        with pytest.raises(InvalidMessage, match="finite"):
            ranking_message(broken_ranking, broken_report, **told)


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
def test_what_is_no_ranking(value: bytes, why: str) -> None:
    with pytest.raises(InvalidMessage, match=why):
        decode_ranking(value)


@given(st.data())
def test_damaged_rankings_are_refused_or_read(data: st.DataObject) -> None:
    plain = orjson.loads(encode_ranking(message(1, message(0))))
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
