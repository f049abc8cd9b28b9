"""MessagePack from others, read without trust.

A container's header may declare any number of elements, and the library makes room for all of them
at once, nested ones too. So containers are built here, an element at a time: hostile bytes cost no
more memory than honest ones of the same length.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

DEPTH: Final = 32
"""Containers within containers, at most."""


class Malformed(ValueError):
    """Not what was expected; each codec turns it into an error of its own."""


def unpack(data: bytes) -> Any:
    """Numbers, texts, bytes, lists and maps of text to these; `Malformed` for anything else."""
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
