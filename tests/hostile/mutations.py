"""Mutations of valid bytes.

No coverage is measured: most decoders are compiled (MessagePack, JSON, NumPy, zlib), where a fuzzer
for Python sees nothing. Knowledge of the formats takes its place.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from random import Random
from typing import Final

MAX_BYTES: Final = 1 << 18
"""Bytes of a mutated input."""
MAX_CHANGES: Final = 6

_WHOLES: Final = (
    0, 1, 0x7F, 0x80, 0xFF, 0x7FFF, 0xFFFF, 2**31 - 1, 2**31, 2**32 - 1, 2**63, 2**64 - 1,
)  # fmt: skip
_FLOATS: Final = (float("nan"), float("inf"), float("-inf"), 5e-324, -0.0, -1.0, 1e308, 1e39, 1e51)
_TOKENS: Final = (
    b"\x00", b"\xff\xff\xff\xff", b"\xff\xfe", b"\xed\xa0\x80", b"\xc0\x80", b"\n", b"\r\n",
    b"\x7f",
    # MessagePack: containers, texts, bytes and extensions that announce far more than follows.
    b"\xdd\xff\xff\xff\xff", b"\xdd\x00\x10\x00\x00", b"\xdc\xff\xff", b"\xdf\xff\xff\xff\xff",
    b"\xde\xff\xff", b"\xdb\xff\xff\xff\xff", b"\xc6\xff\xff\xff\xff", b"\xc9\xff\xff\xff\xff\x01",
    b"\xd6\xff\x00\x00\x00\x00", b"\xc1", b"\xc0", b"\xc2", b"\xc3", b"\x90", b"\x80", b"\xa0",
    b"\xcb\x7f\xf8\x00\x00\x00\x00\x00\x00", b"\xcf" + b"\xff" * 8, b"\xd3\x80" + b"\x00" * 7,
    # JSON and TOML.
    b"NaN", b"Infinity", b"-Infinity", b"1e400", b"-1e400", b"5e-324", b"-0", b"1e", b"null",
    b"true",
    b"18446744073709551616", b"-9223372036854775809", b"\\ud800", b"\\u0000", b'"', b"{", b"}",
    b"[",
    b"]", b",", b":", b"{}", b"[]", b'{"v":1,', b'"v":1,', b'"views":{},', b"=", b"[[a]]", b"'''",
    b'"""', b"1979-05-27T07:32:00Z", b"inf", b"nan", b"0x", b"a.b.c=1\n", b"\xef\xbb\xbf",
)  # fmt: skip

Change = Callable[[Random, bytearray, Sequence[bytes]], None]


def mutate(chance: Random, seeds: Sequence[bytes]) -> bytes:
    """One of the seeds, changed a few times."""
    data = bytearray(chance.choice(seeds))
    for _ in range(1 + min(int(chance.expovariate(1.0)), MAX_CHANGES)):
        change = chance.choice(_RARE if chance.random() < _RARE_SHARE else _CHANGES)
        change(chance, data, seeds)
    return bytes(data[:MAX_BYTES])


def _position(chance: Random, data: bytearray) -> int:
    return chance.randrange(len(data) + 1)


def _flip(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    for _count in range(chance.choice((1, 1, 1, 2, 8))):
        if data:
            data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)


def _overwrite(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    if data:
        data[chance.randrange(len(data))] = chance.randrange(256)


def _truncate(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    del data[_position(chance, data) :]


def _cut(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    start = _position(chance, data)
    del data[start : start + 1 + int(chance.expovariate(0.1))]


def _repeat(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    start = _position(chance, data)
    piece = data[start : start + 1 + int(chance.expovariate(0.05))]
    data[start:start] = piece * chance.choice((1, 1, 2, 10))


def _splice(chance: Random, data: bytearray, seeds: Sequence[bytes]) -> None:
    other = chance.choice(seeds)
    start = chance.randrange(len(other) + 1)
    end = min(len(other), start + 1 + int(chance.expovariate(0.02)))
    at = _position(chance, data)
    data[at : at + (end - start if chance.random() < 0.5 else 0)] = other[start:end]


def _length(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """A number of some width at a random position, as if it were a length."""
    width = chance.choice("BHIQ")
    whole = chance.choice(_WHOLES) & ((1 << 8 * struct.calcsize(width)) - 1)
    written = struct.pack(chance.choice("<>") + width, whole)
    at = _position(chance, data)
    data[at : at + len(written)] = written


def _number(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    value = chance.choice(_FLOATS)
    width = "d" if abs(value) > 3e38 and abs(value) != float("inf") else chance.choice("fd")
    written = struct.pack(chance.choice("<>") + width, value)
    at = _position(chance, data)
    data[at : at + len(written)] = written


def _token(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    token = chance.choice(_TOKENS)
    at = _position(chance, data)
    data[at : at + (len(token) if chance.random() < 0.5 else 0)] = token


def _noise(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _position(chance, data)
    data[at:at] = chance.randbytes(chance.choice((1, 4, 16, 64)))


def _deep(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """Nested containers at a random position."""
    opening, closing = chance.choice(
        ((b"\x91", b""), (b"\x81\xa1a", b""), (b"[", b"]"), (b'{"a":', b"}"),
         (b"\xdc\x10\x00", b""),
         (b"\xdd\x00\x01\x00\x00", b""), (b"a.", b""), (b"[[", b"]]"))
    )  # fmt: skip
    levels = chance.choice((40, 500, 1023, 1100, 5000))
    inner = chance.choice((b"\x01", b"1", b""))
    at = _position(chance, data)
    data[at : at + chance.choice((0, 1, 8))] = opening * levels + inner + closing * levels


def _digits(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    at = _position(chance, data)
    count = chance.choice((30, 400, 4301, 100_000))
    data[at : at + chance.choice((0, 1))] = bytes([chance.choice(b"19")]) * count


def _long(chance: Random, data: bytearray, _: Sequence[bytes]) -> None:
    """The same few bytes many times."""
    piece = chance.choice((*_TOKENS, b"a", b'"a":1,', b"[],", b"\xa1a\x01", b'a="b"\n'))
    at = _position(chance, data)
    data[at:at] = piece * chance.choice((100, 3000))


_CHANGES: Final[tuple[Change, ...]] = (
    _flip, _flip, _overwrite, _truncate, _cut, _repeat, _splice, _length, _number, _token, _token,
    _noise,
)  # fmt: skip
_RARE: Final[tuple[Change, ...]] = (_deep, _digits, _long)
_RARE_SHARE: Final = 0.04
