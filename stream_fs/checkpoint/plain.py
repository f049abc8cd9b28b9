"""Plain data as MessagePack, read back without trust.

A container's header may declare any number of elements, and the library makes room for all of them
at once, nested ones too. So containers are built here, an element at a time: hostile bytes cost no
more memory than honest ones of the same length.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, Final, TypeAlias

import msgpack

Plain: TypeAlias = "bool | int | float | str | bytes | Sequence[Plain] | Mapping[str, Plain] | None"
"""What can be packed. Sequences come back as lists, mappings as dicts."""

DEPTH: Final = 32
"""Containers within containers, at most."""

LARGEST: Final = 2**63 - 1
"""Counts and offsets go up to here, as Kafka's do."""


class Malformed(ValueError):
    """Not what was expected; each codec turns it into an error of its own."""


def pack(value: Plain) -> bytes:
    """MessagePack; equal values in the same order give the same bytes."""
    packed: bytes = msgpack.packb(value, use_bin_type=True)
    return packed


def unpack(data: bytes) -> Any:
    """The inverse of `pack`; `Malformed` for anything that it does not write."""
    reader = _Reader(data)
    try:
        value = reader.value(DEPTH)
    except (msgpack.UnpackException, ValueError) as error:
        raise Malformed(f"not plain MessagePack: {error or type(error).__name__}") from error
    if reader.position != len(data):
        raise Malformed(f"{len(data) - reader.position} bytes too many")
    return value


class _Reader:
    """Walks over the bytes; the library decodes headers and scalars."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1))
        self._unpacker.feed(data)

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return int(self._unpacker.tell())

    def value(self, depth: int) -> Any:
        """The next value, with at most `depth` containers around each other."""
        if self.position == len(self._data):
            raise Malformed("it ends too early")
        code = self._data[self.position]
        if 0x90 <= code <= 0x9F or 0xDC <= code <= 0xDD:
            inner = _deeper(depth)
            return [self.value(inner) for _ in range(self._unpacker.read_array_header())]
        if 0x80 <= code <= 0x8F or 0xDE <= code <= 0xDF:
            return self._mapping(_deeper(depth))
        if 0xC7 <= code <= 0xC9 or 0xD4 <= code <= 0xD8:
            raise Malformed("extension types are not plain data")
        return self._unpacker.unpack()

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for _ in range(self._unpacker.read_map_header()):
            key = self.value(depth)
            if not isinstance(key, str) or key in mapping:
                raise Malformed("keys must be strings, each of them once")
            mapping[key] = self.value(depth)
        return mapping


def _deeper(depth: int) -> int:
    if depth == 0:
        raise Malformed("it is nested too deeply")
    return depth - 1


def mapping(value: object) -> dict[str, Any]:
    """A mapping, or `Malformed`."""
    if not isinstance(value, dict):
        raise Malformed("not a mapping")
    return value


def field(fields: Mapping[str, Any], name: str, kind: type) -> Any:
    """A field of exactly this type, or `Malformed`."""
    value = fields.get(name)
    if type(value) is not kind:
        raise Malformed(f"{name} is not of type {kind.__name__}")
    return value


def whole(fields: Mapping[str, Any], name: str) -> int:
    """A field that counts something: 0 … 2⁶³ - 1, or `Malformed`."""
    value: int = field(fields, name, int)
    if not 0 <= value <= LARGEST:
        raise Malformed(f"{name} is out of range")
    return value


def finite(fields: Mapping[str, Any], name: str) -> float:
    """A field with a finite number, or `Malformed`."""
    value: float = field(fields, name, float)
    if not math.isfinite(value):
        raise Malformed(f"{name} is not finite")
    return value
