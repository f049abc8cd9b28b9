"""Bad records: published unchanged as dead letters, skipped, or an error, by policy."""

from __future__ import annotations

import hashlib
from typing import Any, Final, get_args

import msgpack
import numpy as np
import pytest

from stream_fs.errors import BadRecordRefused, FatalError, PoisonFlood
from stream_fs.pipeline import events
from stream_fs.records import Reason
from stream_fs.wire.records.encoder import Sparse, encode_record
from tests.contracts.backend import Published
from tests.integration.service.conftest import MakeMember, MakeStream
from tests.integration.service.stream import CHUNK, FIRST, Stream, chunks
from tests.integration.service.undisturbed import assert_undisturbed

DECLARED: Final[dict[str, Any]] = {
    "views": [
        {"name": "a", "dimension": 6},
        {"name": "b", "dimension": 4},
        {"name": "counts", "dimension": 3, "transform": "unit"},
        {"name": "raw", "dimension": 2, "transform": "none", "dtype": "float64"},
    ],
    "limits.record_bytes": 500,
}
GOOD: Final = np.ones(6, np.float32)
BAD: Final[dict[Reason, bytes | None]] = {
    "tombstone": None,
    "too_large": encode_record({"a": GOOD}, "i" * 500),
    "malformed": b"not a record",
    "version": msgpack.packb({"v": 2, "views": {"a": [1, 2, 3, 4, 5, 6]}}),
    "unknown_view": encode_record({"a": GOOD, "other": GOOD}),
    "dimension": encode_record({"a": GOOD[:5]}),
    "bad_sparse": encode_record({"a": Sparse([3, 1], [1.0, 2.0])}),
    "all_missing": encode_record({"a": None}),
    "not_finite": encode_record({"a": GOOD * np.float32("nan")}),
    "negative": encode_record({"counts": [1.0, -1.0, 0.0]}),
    "out_of_range": encode_record({"raw": [1.0, 1e60]}, dtypes={"raw": "float64"}),
}


def test_every_kind_of_bad_record_becomes_a_dead_letter(
    make_stream: MakeStream, member: MakeMember
) -> None:
    assert set(BAD) == set(get_args(Reason))
    stream = make_stream(DECLARED)
    good = chunks(2)
    stream.feed(good[:20])
    stream.feed(list(BAD.values()))
    stream.feed(good[20:])
    one = member(stream)
    one.completes(2)

    letters = stream.letters()[stream.only]
    sent = stream.fed[stream.only][20 : 20 + len(BAD)]
    for letter, message, reason in zip(letters, sent, BAD, strict=True):
        assert (letter.key, letter.value) == (message.key, message.value)
        own, added = letter.headers[: len(message.headers)], letter.headers[len(message.headers) :]
        assert own == message.headers
        headers = {name: (value or b"").decode() for name, value in added}
        assert headers.pop("stream-fs-detail")
        assert headers == {
            "stream-fs-reason": reason,
            "stream-fs-topic": message.topic,
            "stream-fs-partition": "0",
            "stream-fs-offset": str(message.offset),
            "stream-fs-timestamp": str(message.timestamp),
        }
    counted = dict.fromkeys(BAD, 1)
    assert [commit.dead_letters for commit in one.of(events.ChunkCommitted)] == [counted, {}]
    assert_undisturbed(stream, 2)


def test_records_too_large_for_a_dead_letter_are_shortened(
    make_stream: MakeStream, member: MakeMember
) -> None:
    """Brokers check sizes after compression, the client before it."""
    stream = make_stream(
        producing={"compression.type": "gzip", "message.max.bytes": 20_000_000},
    )
    large, digest = bytes(5_000_000), hashlib.sha256(bytes(5_000_000)).hexdigest()
    good = chunks(2)
    stream.feed(good[:20])
    stream.feed([large])
    stream.feed([b"bad"], key=large)
    stream.feed([b"bad"], headers=(("large", large),))
    stream.feed([large], key=large, headers=(("large", large),))
    stream.feed(good[20:])
    one = member(stream)
    one.completes(2)

    value, key, headers, everything = stream.letters()[stream.only]
    of_value = {"stream-fs-value-bytes": "5000000", "stream-fs-value-sha256": digest}
    of_key = {"stream-fs-key-bytes": "5000000", "stream-fs-key-sha256": digest}
    of_headers = {"stream-fs-headers-bytes": "5000005"}
    assert (value.key, value.value) == (b"key-20", large[:1024])
    assert cuts(value) == of_value
    assert value.headers[:2] == stream.fed[stream.only][20].headers
    assert (key.key, key.value) == (large[:1024], b"bad")
    assert cuts(key) == of_key
    assert (headers.key, headers.value) == (b"key-22", b"bad")
    assert cuts(headers) == of_headers
    assert (everything.key, everything.value) == (large[:1024], large[:1024])
    assert cuts(everything) == of_value | of_key | of_headers
    assert_undisturbed(stream, 2)


def test_the_last_of_many_large_bad_records_are_shortened(
    make_stream: MakeStream, member: MakeMember
) -> None:
    """Held and sent at once would be 27 MB; the service continues, also after a crash."""
    stream = make_stream({"dead_letters.max_open_bytes": 5_000_000, "output.linger_seconds": 0.0})
    good, large = chunks(2), b"x" * 900_000
    stream.feed(good[:FIRST])
    stream.feed([value for record in good[FIRST:] for value in (large, large, record)])
    first = member(stream)
    first.at("records sent", 2, crash)
    with pytest.raises(Crash):
        first.until(lambda: False, "the crash")
    first.kill()
    second = member(stream)
    second.completes(2)
    letters = stream.letters()[stream.only]
    assert [len(letter.value or b"") for letter in letters] == [900_000] * 5 + [1024] * 25
    assert all(cuts(letter)["stream-fs-value-bytes"] == "900000" for letter in letters[5:])
    assert_undisturbed(stream, 2)


def test_the_error_for_a_record_that_cannot_be_decompressed_has_its_remedies(
    make_stream: MakeStream, member: MakeMember
) -> None:
    """A few kilobytes in the topic, and above a limit of the client that a property raises."""
    stream = make_stream(producing={"compression.type": "zstd", "message.max.bytes": 100_000_000})
    good = chunks(2)
    stream.feed(good[:FIRST])
    stream.feed([bytes(90_000_000)])
    stream.feed(good[FIRST:])
    one = member(stream)
    with pytest.raises(FatalError, match=r"at 40 .* reset .*--keep-model --to-offset") as caught:
        one.until(lambda: False, "the large record")
    one.kill()
    assert "raise receive.message.max.bytes in kafka.properties" in str(caught.value)

    larger = dict(stream.configuration().kafka.properties) | {
        "receive.message.max.bytes": 1_000_000_000
    }
    other = member(stream, {"kafka.properties": larger})
    other.completes(2)
    (letter,) = stream.letters()[stream.only]
    assert cuts(letter)["stream-fs-value-bytes"] == "90000000"
    assert_undisturbed(stream, 2)


class Crash(BaseException):
    """Nothing catches this on the way out."""


def crash() -> None:
    raise Crash


def cuts(letter: Published) -> dict[str, str]:
    """The headers of shortened parts."""
    parts = ("value", "key", "headers")
    return {
        name: (value or b"").decode()
        for name, value in letter.headers
        if name.removeprefix("stream-fs-").startswith(parts)
    }


def test_the_dead_letters_of_an_uncommitted_chunk_are_not_published(
    stream: Stream, member: MakeMember
) -> None:
    stream.feed([*chunks(1), b"first"])
    first = member(stream)
    first.completes(1)
    first.until(lambda: any(one.bad for one in first.of(events.RecordsRead)), "the bad record")
    first.stop()
    assert not stream.letters()[stream.only]
    stream.feed([*chunks(2)[-CHUNK:], b"next chunk"])
    second = member(stream)
    second.completes(2)
    assert [letter.value for letter in stream.letters()[stream.only]] == [b"first"]
    assert_undisturbed(stream, 2)


def test_the_first_bad_record_stops_the_stream_with_policy_fail(
    stream: Stream, member: MakeMember
) -> None:
    stream.feed([*chunks(1), b"bad"])
    strict = member(stream, {"dead_letters.policy": "fail"})
    with pytest.raises(BadRecordRefused) as caught:
        strict.until(lambda: False, "the bad record")
    strict.kill()
    assert f"{stream.only} at offset {FIRST} is bad (malformed: " in str(caught.value)
    assert "dead_letters.policy is 'fail'" in str(caught.value)
    assert f"--keep-model --to-offset {FIRST + 1}`" in str(caught.value)

    stream.feed(chunks(2)[-CHUNK:])
    lenient = member(stream)
    lenient.completes(2)
    assert_undisturbed(stream, 2)


def test_a_flood_of_bad_records_stops_the_stream_and_skipping_continues_it(
    stream: Stream, member: MakeMember
) -> None:
    flood = 12
    stream.feed(chunks(1))
    limits = {"dead_letters.tolerated": flood, "dead_letters.max_ratio": 0.4}
    one = member(stream, limits)
    one.completes(1)
    stream.feed([b"bad"] * flood)
    with pytest.raises(PoisonFlood) as caught:
        one.until(lambda: False, "the flood")
    one.kill()
    message = str(caught.value)
    assert f"{flood} of the {flood} records since offset {FIRST} " in message
    assert f"of {stream.only} are bad" in message
    assert "malformed" in message
    for way_out in (
        f"`stream-fs checkpoint reset --topic {stream.only.topic} --partition 0 "
        "--keep-model --to-offset N`",
        "dead_letters.policy = 'skip'",
        "dead_letters.max_ratio",
    ):
        assert way_out in message

    skip = {"dead_letters.policy": "skip"}
    stream.feed(chunks(2)[-CHUNK:])
    other = member(stream, {**limits, **skip})
    other.completes(2)
    assert not stream.letters()[stream.only]
    read = other.of(events.RecordsRead)
    assert sum(event.bad.get("malformed", 0) for event in read) == flood
    assert_undisturbed(stream, 2, skip)


def test_too_many_bad_records_in_an_open_chunk_stop_the_stream(
    stream: Stream, member: MakeMember
) -> None:
    """However many good ones there are."""
    stream.feed([*chunks(1)[:-1], *[b"bad"] * 6])
    one = member(stream, {"dead_letters.max_open": 5})
    with pytest.raises(PoisonFlood, match="The producer seems to be broken"):
        one.until(lambda: False, "the flood")
