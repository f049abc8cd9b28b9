"""Hostile records that were faults once."""

from __future__ import annotations

import tracemalloc

import msgpack
import pytest

from stream_fs.wire import DeclaredView, Limits, RecordDecoder

VIEWS = (DeclaredView("a", 3), DeclaredView("b", 4, "float64", "unit"))


DEEP = b"\x91" * 1020 + b"\x01"


DEEP_JSON = b"[" * 1020 + b"]" * 1020


@pytest.mark.parametrize(
    "value",
    [
        b"\x82\xa1v" + DEEP + b"\xa5views\x80",
        b"\x83\xa1v\x01\xa2id" + DEEP + b"\xa5views\x80",
        b"\x82\xa1v\x01\xa5views" + DEEP,
        b"\x82\xa1v\x01\xa5views\x81\xa1a" + DEEP,
    ],
)
def test_a_deep_record_is_bad_and_not_an_error(value: bytes) -> None:
    """To show what was there in place of a number took more levels than Python has."""
    (bad,) = RecordDecoder(VIEWS).decode([value]).bad
    assert bad.reason in ("dimension", "malformed", "version")


@pytest.mark.parametrize("field", [b'{"v":%b}', b'{"v":1,"id":%b}', b'{"v":1,"views":%b}'])
def test_a_deep_record_in_json_is_bad_and_not_an_error(field: bytes) -> None:
    (bad,) = RecordDecoder(VIEWS, "json").decode([field % DEEP_JSON]).bad
    assert bad.reason in ("dimension", "malformed", "version")


def test_lists_in_lists_reserve_no_memory() -> None:
    """Each announced as many entries as the widest view has, and a thousand of them add up."""
    decoder = RecordDecoder([DeclaredView("wide", 100_000)], limits=Limits(1 << 20))
    value = b"\x82\xa1v\x01\xa5views\x81\xa4wide" + b"\xdd\x00\x01\x86\xa0" * 1000 + bytes(100_000)
    tracemalloc.start()
    (bad,) = decoder.decode([value]).bad
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert bad.reason == "malformed"
    assert peak < 20_000_000


def test_a_long_list_is_still_read() -> None:
    """One that is looked at twice, as it could reserve much: there are bytes of list headers."""
    decoder = RecordDecoder([DeclaredView("wide", 100_000)])
    numbers = [0xDC] * 50_000 + [0.5] * 50_000
    batch = decoder.decode([msgpack.packb({"v": 1, "views": {"wide": numbers}})])
    assert not batch.bad
    assert batch.views["wide"].dense().tolist() == [numbers]
