"""Documents that are whole, but not what they should be: written as MessagePack, JSON or TOML.

A parser stops at the first byte that is wrong; what comes behind the parser is reached only by
documents that parse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import msgpack

Writer = Callable[[Any], bytes]


class Raw:
    """Bytes that stand in a document as they are."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class Pairs(list[tuple[Any, Any]]):
    """A map in which a key may occur twice, and keys may be anything."""


_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2, 255, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 2**64 - 1,
    0.0, -0.0, 0.5, 1.0, 1e308, -1e308, 1e39, 5e-324, float("nan"), float("inf"), float("-inf"),
    "", "a", "b", "\x00", "a\nb", "\u202e", "x" * 300, "1", "all", b"", b"\x00" * 4, b"\xff" * 8,
    b"\xff" * 12, b"x" * 24, [], {}, [[]], [{}], [None], ["a"], [1, 2], {"a": 1}, {"": {}},
    {"i": [], "x": []}, {"i": [2, 1], "x": [1.0, 1.0]}, {"i": b"\x00" * 4, "x": b"\x00" * 4},
    {"i": [2**63 - 1], "x": [1]}, {"i": [-1], "x": [0.5]}, [1e300] * 3, [2**64 - 1] * 3, ["1"] * 3,
)  # fmt: skip


def twisted(chance: Random, documents: Sequence[Any], write: Writer) -> bytes:
    """One of the documents with something in it replaced, lost, doubled or wrapped."""
    document = chance.choice(documents)
    for _ in range(1 + min(int(chance.expovariate(1.0)), 4)):
        document = _twist(chance, document, documents)
    return write(document)


def _twist(chance: Random, value: Any, documents: Sequence[Any]) -> Any:
    """Walk down to a random place, and change what is there."""
    if isinstance(value, Pairs) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        changed = Pairs(value)
        changed[at] = (value[at][0], _twist(chance, value[at][1], documents))
        return changed
    if isinstance(value, dict) and value and chance.random() < 0.85:
        name = chance.choice(list(value))
        return {**value, name: _twist(chance, value[name], documents)}
    if type(value) is list and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        return [*value[:at], _twist(chance, value[at], documents), *value[at + 1 :]]
    return _changed(chance, value, documents)


def _changed(chance: Random, value: Any, documents: Sequence[Any]) -> Any:
    way = chance.random()
    if way < 0.15 and isinstance(value, dict) and value:
        lost = chance.choice(list(value))
        return {name: inner for name, inner in value.items() if name != lost}
    if way < 0.3 and isinstance(value, dict) and value:
        name = chance.choice(list(value))
        return Pairs([*value.items(), (name, chance.choice(_VALUES))])
    if way < 0.4 and isinstance(value, dict):
        return Pairs([*value.items(), (chance.choice(_VALUES), value)])
    if way < 0.2 and type(value) is list:
        return value[: chance.randrange(len(value) + 1)]
    if way < 0.4 and type(value) is list:
        return value * chance.choice((2, 50))
    if way < 0.45:
        for _ in range(chance.choice((1, 3, 30, 600, 1020))):
            value = [value] if chance.random() < 0.5 else {"a": value}
        return value
    if way < 0.5:
        return chance.choice(documents)
    if way < 0.55:
        return Raw(
            chance.choice((b"\xdd\x00\x01\x00\x00" * 300, b"\xc1", b"1" * 5000, b"NaN", b""))
        )
    return chance.choice(_VALUES)


def as_messagepack(value: Any) -> bytes:
    """Whatever it is."""
    out: list[bytes] = []
    packer = msgpack.Packer()
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Raw):
            out.append(one.data)
        elif isinstance(one, dict | Pairs):
            pairs = list(one.items()) if isinstance(one, dict) else one
            out.append(packer.pack_map_header(len(pairs)))
            for key, inner in reversed(pairs):
                waiting += [inner, key]
        elif isinstance(one, list):
            out.append(packer.pack_array_header(len(one)))
            waiting += reversed(one)
        else:
            out.append(msgpack.packb(one))
    return b"".join(out)


def as_json(value: Any) -> bytes:
    """Whatever it is; bytes as text, and keys too."""
    out: list[bytes] = []
    waiting: list[Any] = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Raw):
            out.append(one.data)
        elif isinstance(one, dict | Pairs):
            pairs = list(one.items()) if isinstance(one, dict) else one
            waiting.append(Raw(b"}"))
            for number, (key, inner) in reversed(list(enumerate(pairs))):
                name = json.dumps(key if isinstance(key, str) else str(key)[:50]).encode()
                waiting += [inner, Raw((b"," if number else b"") + name + b":")]
            waiting.append(Raw(b"{"))
        elif isinstance(one, list):
            waiting.append(Raw(b"]"))
            for number, inner in reversed(list(enumerate(one))):
                waiting += [inner, Raw(b",")] if number else [inner]
            waiting.append(Raw(b"["))
        else:
            plain = one.decode("latin-1") if isinstance(one, bytes) else one
            out.append(json.dumps(plain).encode())
    return b"".join(out)
