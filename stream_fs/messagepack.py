"""Reads MessagePack from untrusted sources.

The header of a container may announce any number of elements, and the library allocates memory for
all of them at once, nested ones too. So containers are built here element by element: hostile bytes
take no more memory than other bytes of the same length.
"""

from __future__ import annotations

from typing import Any, Final

import msgpack

MAX_DEPTH: Final = 32
"""Containers nested in each other."""


class Malformed(ValueError):
    """The data is not as expected; each codec raises its own error instead."""


def unpack(data: bytes) -> Any:
    """Numbers, text, bytes, lists, and maps from text to these; `Malformed` for anything else."""
    reader = _Reader(data)
    try:
        value = reader.value(MAX_DEPTH)
    except (msgpack.UnpackException, ValueError) as error:
        raise Malformed(f"not plain MessagePack: {error or type(error).__name__}") from error
    if reader.position != len(data):
        raise Malformed(f"{len(data) - reader.position} bytes follow the value")
    return value


class _Reader:
    """Reads value by value; the library decodes headers and scalars."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._unpacker = msgpack.Unpacker(max_buffer_size=max(len(data), 1))
        self._unpacker.feed(data)

    @property
    def position(self) -> int:
        """Bytes read so far."""
        return int(self._unpacker.tell())

    def value(self, depth: int) -> Any:
        """The next value, with at most `depth` nested containers."""
        if self.position == len(self._data):
            raise Malformed("unexpected end of data")
        code = self._data[self.position]
        if 0x90 <= code <= 0x9F or 0xDC <= code <= 0xDD:
            inner = _inner_depth(depth)
            return [self.value(inner) for _ in range(self._unpacker.read_array_header())]
        if 0x80 <= code <= 0x8F or 0xDE <= code <= 0xDF:
            return self._mapping(_inner_depth(depth))
        if 0xC7 <= code <= 0xC9 or 0xD4 <= code <= 0xD8:
            raise Malformed("extension types are not supported")
        return self._unpacker.unpack()

    def _mapping(self, depth: int) -> dict[str, Any]:
        mapping: dict[str, Any] = {}
        for _ in range(self._unpacker.read_map_header()):
            key = self.value(depth)
            if not isinstance(key, str) or key in mapping:
                raise Malformed("keys must be distinct strings")
            mapping[key] = self.value(depth)
        return mapping


def _inner_depth(depth: int) -> int:
    if depth == 0:
        raise Malformed("nested too deeply")
    return depth - 1
