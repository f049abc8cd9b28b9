"""Well-formed but invalid documents, as MessagePack or JSON.

A parser stops at the first wrong byte; the code after the parser is reached only by documents that
parse.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from random import Random
from typing import Any, Final

import msgpack

Writer = Callable[[Any], bytes]


class Raw:
    """Bytes that are written into a document unchanged."""

    def __init__(self, data: bytes) -> None:
        self.data = data


class Pairs(list[tuple[Any, Any]]):
    """A map with any keys, also duplicate ones."""


_VALUES: Final[tuple[Any, ...]] = (
    None, True, False, 0, 1, -1, 2, 255, 2**31, 2**32, 2**53, 2**62, 2**63 - 1, -(2**63), 2**64 - 1,
    0.0, -0.0, 0.5, 1.0, 1e308, -1e308, 1e39, 5e-324, float("nan"), float("inf"), float("-inf"),
    "", "a", "b", "\x00", "a\nb", "\u202e", "x" * 300, "1", "all", b"", b"\x00" * 4, b"\xff" * 8,
    b"\xff" * 12, b"x" * 24, [], {}, [[]], [{}], [None], ["a"], [1, 2], {"a": 1}, {"": {}},
    {"i": [], "x": []}, {"i": [2, 1], "x": [1.0, 1.0]}, {"i": b"\x00" * 4, "x": b"\x00" * 4},
    {"i": [2**63 - 1], "x": [1]}, {"i": [-1], "x": [0.5]}, [1e300] * 3, [2**64 - 1] * 3, ["1"] * 3,
)  # fmt: skip


def mutate_document(chance: Random, documents: Sequence[Any], write: Writer) -> bytes:
    """One of the documents, with values replaced, removed, duplicated or wrapped."""
    document = chance.choice(documents)
    for _ in range(1 + min(int(chance.expovariate(1.0)), 4)):
        document = _mutate(chance, document, documents)
    return write(document)


def _mutate(chance: Random, value: Any, documents: Sequence[Any]) -> Any:
    """Descend to a random value, and change it."""
    if isinstance(value, Pairs) and value and chance.random() < 0.85:
        at = chance.randrange(len(value))
        changed = Pairs(value)
        changed[at] = (value[at][0], _mutate(chance, value[at][1], documents))
        return changed
    if isinstance(value, dict) and value and chance.random() < 0.85:
        name = chance.choice(list(value))
        return {**value, name: _mutate(chance, value[name], documents)}
    if type(value) is list and value and chance.random() < 0.7:
        at = chance.randrange(len(value))
        return [*value[:at], _mutate(chance, value[at], documents), *value[at + 1 :]]
    return _change(chance, value, documents)


def _change(chance: Random, value: Any, documents: Sequence[Any]) -> Any:
    kind = chance.random()
    if kind < 0.15 and isinstance(value, dict) and value:
        removed = chance.choice(list(value))
        return {name: inner for name, inner in value.items() if name != removed}
    if kind < 0.3 and isinstance(value, dict) and value:
        name = chance.choice(list(value))
        return Pairs([*value.items(), (name, chance.choice(_VALUES))])
    if kind < 0.4 and isinstance(value, dict):
        return Pairs([*value.items(), (chance.choice(_VALUES), value)])
    if kind < 0.2 and type(value) is list:
        return value[: chance.randrange(len(value) + 1)]
    if kind < 0.4 and type(value) is list:
        return value * chance.choice((2, 50))
    if kind < 0.45:
        for _ in range(chance.choice((1, 3, 30, 600, 1020))):
            value = [value] if chance.random() < 0.5 else {"a": value}
        return value
    if kind < 0.5:
        return chance.choice(documents)
    if kind < 0.55:
        return Raw(
            chance.choice((b"\xdd\x00\x01\x00\x00" * 300, b"\xc1", b"1" * 5000, b"NaN", b""))
        )
    return chance.choice(_VALUES)


def as_messagepack(value: Any) -> bytes:
    """Any document."""
    out: list[bytes] = []
    packer = msgpack.Packer()
    pending = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, Raw):
            out.append(one.data)
        elif isinstance(one, dict | Pairs):
            pairs = list(one.items()) if isinstance(one, dict) else one
            out.append(packer.pack_map_header(len(pairs)))
            for key, inner in reversed(pairs):
                pending += [inner, key]
        elif isinstance(one, list):
            out.append(packer.pack_array_header(len(one)))
            pending += reversed(one)
        else:
            out.append(msgpack.packb(one))
    return b"".join(out)


def as_json(value: Any) -> bytes:
    """Any document; bytes and keys as text."""
    out: list[bytes] = []
    pending: list[Any] = [value]
    while pending:
        one = pending.pop()
        if isinstance(one, Raw):
            out.append(one.data)
        elif isinstance(one, dict | Pairs):
            pairs = list(one.items()) if isinstance(one, dict) else one
            pending.append(Raw(b"}"))
            for number, (key, inner) in reversed(list(enumerate(pairs))):
                name = json.dumps(key if isinstance(key, str) else str(key)[:50]).encode()
                pending += [inner, Raw((b"," if number else b"") + name + b":")]
            pending.append(Raw(b"{"))
        elif isinstance(one, list):
            pending.append(Raw(b"]"))
            for number, inner in reversed(list(enumerate(one))):
                pending += [inner, Raw(b",")] if number else [inner]
            pending.append(Raw(b"["))
        else:
            plain = one.decode("latin-1") if isinstance(one, bytes) else one
            out.append(json.dumps(plain).encode())
    return b"".join(out)
