from __future__ import annotations

import hashlib
from contextlib import nullcontext

import pytest
from confluent_kafka import KafkaException, Producer

from stream_fs.records import BadRecord, Message, Payload, printable
from stream_fs.wire import RecordDecoder, dead_letter
from stream_fs.wire.dead_letters import KEPT_BYTES, OWN_HEADERS_BYTES, DeadLetter, message_bytes
from tests.support.records import VIEWS
from tests.support.schemas import errors_in

MESSAGE = Message(
    "pumps", 3, 184467, 1710137700000, b"k", b"?", (("trace", b"\xff"), ("empty", None))
)


def test_the_message_is_unchanged() -> None:
    letter = dead_letter(MESSAGE, BadRecord(0, "malformed", "not MessagePack"))
    assert (letter.key, letter.value) == (b"k", b"?")
    assert letter.headers == (
        ("trace", b"\xff"),
        ("empty", None),
        ("stream-fs-reason", b"malformed"),
        ("stream-fs-detail", b"not MessagePack"),
        ("stream-fs-topic", b"pumps"),
        ("stream-fs-partition", b"3"),
        ("stream-fs-offset", b"184467"),
        ("stream-fs-timestamp", b"1710137700000"),
    )


def test_a_tombstone_has_no_value() -> None:
    message = Message("pumps", 0, 0, -1, None, None)
    (bad,) = RecordDecoder(VIEWS).decode([message.value]).bad
    letter = dead_letter(message, bad)
    assert (letter.key, letter.value) == (None, None)
    assert len(letter.headers) == 6


def test_the_newest_reason_is_the_last() -> None:
    once = dead_letter(MESSAGE, BadRecord(0, "malformed", "first"))
    again = Message("dead", 0, 5, 6, once.key, once.value, once.headers)
    twice = dead_letter(again, BadRecord(0, "version", "second"))
    assert twice.headers[: len(once.headers)] == once.headers
    assert dict(twice.headers)["stream-fs-reason"] == b"version"
    assert dict(twice.headers)["stream-fs-topic"] == b"dead"


def test_hostile_bytes_make_short_printable_headers() -> None:
    name = b"\xdb\x00\x01\x00\x00" + b"\xff\n\x00\xe2" * (1 << 14)
    (bad,) = RecordDecoder(VIEWS).decode([b"\x82\xa1v\x01\xa5views\x81" + name + b"\xc0"]).bad
    assert bad.reason == "unknown_view"
    letter = dead_letter(MESSAGE, bad)
    own_headers = {name: text.decode() for name, text in letter.headers[2:] if text is not None}
    assert own_headers["stream-fs-detail"].isprintable()
    assert errors_in("dead-letter-headers", own_headers) == []


def test_a_long_detail_is_cut() -> None:
    assert printable("a" * 300) == "a" * 300
    assert printable("a" * 301) == "a" * 299 + "…"
    assert printable("a\nb\udcff") == "a\N{REPLACEMENT CHARACTER}b\\udcff"


BAD = BadRecord(0, "too_large", "many bytes")
LIMIT = 20_000


def shortened_letter(
    value: bytes | None, key: bytes | None = b"k", header: bytes = b"h"
) -> DeadLetter:
    headers = (("own", header), ("empty", None))
    return DeadLetter.of(
        Message("pumps", 3, 184467, 1710137700000, key, value, headers), BAD, LIMIT
    )


def size_headers(letter: DeadLetter) -> dict[str, str]:
    """The published headers about shortened parts."""
    known = len(letter.message.headers) + 6
    return {name: (text or b"").decode() for name, text in letter.payload.headers[known:]}


def test_a_dead_letter_within_the_limit_is_not_shortened() -> None:
    room = LIMIT - shortened_letter(b"").size
    for value in (None, b"", b"v" * KEPT_BYTES, b"v" * (room - 10)):
        letter = shortened_letter(value)
        assert letter.payload == dead_letter(letter.message, BAD)
        assert (letter.message.value, size_headers(letter)) == (value, {})


def test_a_value_that_does_not_fit_is_shortened() -> None:
    value = bytes(range(256)) * 100
    letter = shortened_letter(value)
    assert letter.payload.value == value[:KEPT_BYTES]
    assert letter.payload.key == b"k"
    assert letter.payload.headers[:2] == (("own", b"h"), ("empty", None))
    assert size_headers(letter) == {
        "stream-fs-value-bytes": "25600",
        "stream-fs-value-sha256": hashlib.sha256(value).hexdigest(),
    }
    assert shortened_letter(value).payload == letter.payload


def test_a_key_that_does_not_fit_is_shortened_and_the_value_stays() -> None:
    key, value = b"k" * LIMIT, b"v" * 2 * KEPT_BYTES
    letter = shortened_letter(value, key)
    assert (letter.payload.key, letter.payload.value) == (key[:KEPT_BYTES], value)
    assert size_headers(letter) == {
        "stream-fs-key-bytes": str(LIMIT),
        "stream-fs-key-sha256": hashlib.sha256(key).hexdigest(),
    }


def test_headers_that_do_not_fit_are_omitted_and_the_rest_stays() -> None:
    key, value = b"k" * 2 * KEPT_BYTES, b"v" * 3 * KEPT_BYTES
    letter = shortened_letter(value, key, b"h" * LIMIT)
    assert (letter.payload.key, letter.payload.value) == (key, value)
    assert size_headers(letter) == {
        "stream-fs-headers-bytes": str(LIMIT + len("own") + len("empty"))
    }
    assert [name for name, _ in letter.payload.headers[:6]] == [
        name for name, _ in dead_letter(MESSAGE, BAD).headers[2:]
    ]


@pytest.mark.parametrize("value", [None, 0, 5_000, LIMIT - 3_000, LIMIT, 10 * LIMIT])
@pytest.mark.parametrize("key", [None, 0, 5_000, LIMIT - 3_000, LIMIT, 10 * LIMIT])
@pytest.mark.parametrize("header", [0, 5_000, LIMIT - 3_000, LIMIT, 10 * LIMIT])
def test_every_dead_letter_fits_and_has_the_size_of_shortened_parts(
    value: int | None, key: int | None, header: int
) -> None:
    contents = [None if length is None else bytes(length) for length in (value, key)]
    letter = shortened_letter(contents[0], contents[1], bytes(header))
    assert letter.size == message_bytes(letter.payload) <= LIMIT
    headers = size_headers(letter)
    for name, whole, sent in (
        ("value", contents[0], letter.payload.value),
        ("key", contents[1], letter.payload.key),
    ):
        omitted = int(headers.get(f"stream-fs-{name}-bytes", "0"))
        assert len(whole or b"") == (omitted or len(sent or b""))
        assert (whole is None) == (sent is None)
    own_headers = {name: (text or b"").decode() for name, text in letter.payload.headers}
    assert errors_in("dead-letter-headers", own_headers) == []


def test_the_added_headers_are_below_their_bound() -> None:
    detail = printable("\N{GRINNING FACE}" * 301)
    message = Message("t" * 249, 2**31 - 1, 2**63 - 1, 2**63 - 1, None, None)
    payload = dead_letter(message, BadRecord(0, "unknown_view", detail))
    added = message_bytes(payload) - message_bytes(Payload(None, None))
    # The frame of a record in its batch takes 7 bytes or more, fewer than assumed.
    assert 1_500 < added + (36 - 7) <= OWN_HEADERS_BYTES


@pytest.mark.parametrize("length", [62, 63, 64, 65, 8_190, 8_191, 8_192, 8_193])
def test_sizes_are_those_of_the_client(length: int) -> None:
    """The client rejects larger messages, before they are in a batch."""
    headers = (("n" * length, b"h" * length), ("empty", None))
    message = Message("t", 0, 0, 0, b"k" * length, b"v" * 1000, headers)
    payload = dead_letter(message, BAD)
    needed = message_bytes(payload) - 61
    for limit, refusal in (
        (needed, nullcontext()),
        (needed - 1, pytest.raises(KafkaException, match="MSG_SIZE_TOO_LARGE")),
    ):
        producer = Producer(
            {"bootstrap.servers": "localhost:1", "message.max.bytes": limit, "log_level": 0}
        )
        with refusal:
            producer.produce("t", payload.value, payload.key, headers=list(payload.headers))
        producer.purge()
