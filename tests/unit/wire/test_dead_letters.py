from __future__ import annotations

from stream_fs.records import BadRecord, Message
from stream_fs.wire import RecordDecoder, dead_letter
from stream_fs.wire.refusal import printable
from tests.unit.wire.given import VIEWS
from tests.unit.wire.schemas import errors_in

MESSAGE = Message(
    "pumps", 3, 184467, 1710137700000, b"k", b"?", (("trace", b"\xff"), ("empty", None))
)


def test_the_message_stays_as_it_came() -> None:
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


def test_a_tombstone_stays_one() -> None:
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
    ours = {name: text.decode() for name, text in letter.headers[2:] if text is not None}
    assert ours["stream-fs-detail"].isprintable()
    assert errors_in("dead-letter-headers", ours) == []


def test_a_long_detail_is_cut() -> None:
    assert printable("a" * 300) == "a" * 300
    assert printable("a" * 301) == "a" * 299 + "…"
    assert printable("a\nb\udcff") == "a\N{REPLACEMENT CHARACTER}b\\udcff"
